"""How a group is, in one word and one sentence with figures. No word of alarm comes from one look alone, unless it is a fact.

Facts are what the coordinator tells: an error, a state, the age of a heartbeat, since when a group is Empty. All else needs
looks over STUCK_S or GROWTH_SPAN_S. The sentence holds names that clients chose: a face must make them printable.
"""

from __future__ import annotations

from collections.abc import Sequence

from kgctl.model.groups import REBALANCING, MemberRow
from kgctl.model.topic_partition import TopicPartition
from kgctl.model.watched import Verdict
from kgctl.watch.rates import eta_s
from kgctl.watch.track import GroupTrack
from kgctl.watch.words import counted, rate, span

# A partition that is behind is stuck after this long without a move of its commit; so is a group without members. Kafka
# Connect's sinks, and many a job with checkpoints, commit once a minute.
STUCK_S = 90.0
# A member is called dead when it was not heard of for this share of its session timeout,
DEAD_SHARE = 0.5
# but not while a client that sends a heartbeat each 3 s, as is Kafka's default, may only be late,
HEARTBEAT_MS = 4_000
# unless its session is so short that it would end before.
DEAD_SHARE_AT_MOST = 0.75
# Looks must cover this much before growth means anything.
GROWTH_SPAN_S = 30.0
# Between two commits (each 5 s by default) lag grows and means nothing: growth is more than this much of what comes in.
GROWTH_S = 6.0
# A lag of more than this much of what comes in is lagging even if it does not grow, unless it shrinks
BEHIND_S = 90.0
# by reading this many times as fast as records come in.
CATCHING_UP = 1.1
NAMED = 3
# In a rebalance, members in these phases have done their part.
_PRESENT = {"PreparingRebalance": ("joined",), "CompletingRebalance": ("synced",)}

Said = tuple[Verdict, str]


def verdict(track: GroupTrack) -> Said:
    """The word and the sentence. What people must act upon goes first; see the constants of this file for the limits."""
    group = track.group
    if group is None:
        return Verdict.OK, "not looked at yet"
    if group.error is not None:
        return Verdict.ERROR, group.error.message
    if group.state in REBALANCING:
        return Verdict.REBALANCING, _rebalancing(track, group.state or "", group.members)
    if dead := [member for member in group.members if is_dead(member)]:
        return Verdict.DEAD_MEMBERS, _dead(dead)
    lag = track.lag or 0
    if lag and not group.members:
        if (said := _unread(track, lag)) is not None:
            return said
    elif track.still and (said := _stuck(track)) is not None:
        return said
    if track.failed is not None and track.failed.error is not None:
        return Verdict.ERROR, f"{track.failed.topic} {track.failed.partition}: {track.failed.error.message}"
    return _pace(track, lag) if lag else (Verdict.OK, _without_lag(track, bool(group.members)))


def is_dead(member: MemberRow) -> bool:
    """Whether it was silent for more than half its session timeout. One that waits for the others need not be heard of."""
    age_ms, session_ms = member.heartbeat_age_ms, member.session_timeout_ms
    if age_ms is None or not session_ms or age_ms <= session_ms * DEAD_SHARE or member.phase == "joined":
        return False
    return age_ms > min(HEARTBEAT_MS, session_ms * DEAD_SHARE_AT_MOST)


def _rebalancing(track: GroupTrack, state: str, members: Sequence[MemberRow]) -> str:
    text = f"{state} for {'at least ' if track.is_state_s_least else ''}{span(track.state_s)}"
    present = _PRESENT.get(state, ())
    if not present or any(member.phase is None for member in members):
        return f"{text}, {counted(len(members), 'member')}"
    awaited = [member for member in members if member.phase not in present]
    text += f": {len(members) - len(awaited)} of {counted(len(members), 'member')} {present[0]}"
    return f"{text}, awaited: {_named([_silence(member) for member in awaited])}" if awaited else text


def _dead(dead: Sequence[MemberRow]) -> str:
    each = [f"{_silence(member)} of a session of {span((member.session_timeout_ms or 0) / 1000)}" for member in dead]
    return _named(each)


def _silence(member: MemberRow) -> str:
    name = member.consumer_id or "a member"
    return name if not is_dead(member) else f"{name} not heard of for {span((member.heartbeat_age_ms or 0) / 1000)}"


def _named(texts: Sequence[str]) -> str:
    more = len(texts) - NAMED
    return ", ".join(texts[:NAMED]) + (f" and {more:,} more" if more > 0 else "")


def _unread(track: GroupTrack, lag: int) -> Said | None:
    """None where commits have moved a moment ago: somebody reads without being a member."""
    if track.moved_at_s is not None and track.at_s - track.moved_at_s < STUCK_S:
        return None
    how_long = ("at least " if track.is_memberless_s_least else "") + span(track.memberless_s)
    text = f"no members for {how_long}, a lag of {lag:,}"
    if track.memberless_s < STUCK_S:
        return Verdict.LAGGING, text
    return Verdict.STUCK, f"nobody reads it: {text}"


def _stuck(track: GroupTrack) -> Said | None:
    stuck = {key for key, since_s in track.still.items() if track.at_s - since_s >= STUCK_S}
    if not stuck or track.group is None:
        return None
    rows = [row for row in track.group.partitions if (row.topic, row.partition) in stuck and row.lag is not None]
    if not rows:
        return None
    worst = max(rows, key=lambda row: row.lag or 0)
    since_s = track.at_s - track.still[TopicPartition(worst.topic or "", worst.partition or 0)]
    who = f"read by {worst.consumer_id}" if worst.consumer_id else "which nobody reads"
    text = f"{worst.topic} {worst.partition}, {who}, has not moved for {span(since_s)} at a lag of {worst.lag or 0:,}"
    if len(rows) > 1:
        text += f"; so have {counted(len(rows) - 1, 'other partition')}"
    return Verdict.STUCK, text


def _pace(track: GroupTrack, lag: int) -> Said:
    pace = track.pace
    rate_in, rate_out = pace.rate_in, pace.rate_out
    if rate_in is None or rate_out is None:
        return Verdict.OK, f"a lag of {lag:,}; whether it grows is not known yet"
    text = f"{rate(rate_in)} in, {rate(rate_out)} out"
    if pace.span_s >= GROWTH_SPAN_S and rate_in:
        # Without any commit it is the time between two, or stuck soon.
        if pace.went and pace.came - pace.went > GROWTH_S * rate_in and pace.is_lag_rising():
            return Verdict.LAGGING, f"a lag of {lag:,} grows by {rate(rate_in - rate_out)}: {text}"
        if lag > BEHIND_S * rate_in and rate_out < CATCHING_UP * rate_in:
            return Verdict.LAGGING, f"a lag of {lag:,} is {span(lag / rate_in)} of records and does not shrink: {text}"
    left_s = eta_s(lag, rate_in, rate_out)
    if left_s is not None and pace.span_s >= GROWTH_SPAN_S and rate_out > CATCHING_UP * rate_in:
        return Verdict.OK, f"a lag of {lag:,} shrinks, {span(left_s)} left: {text}"
    return Verdict.OK, f"a lag of {lag:,}: {text}"


def _without_lag(track: GroupTrack, has_members: bool) -> str:
    if track.lag is None:
        text = "no offsets are known" if has_members else "no members"
    else:
        text = "no lag" if has_members else "no members, no lag"
    if track.left_over_lag:
        text += f"; {track.left_over_lag:,} records are in topics that no member wants"
    return text
