"""Judges the health of a group: one word of model.health and one sentence with figures.

Only facts raise an alarm from a single snapshot: an error, a state, the age of a heartbeat, the time since a group is Empty.
All else needs snapshots over STALLED_S or GROWTH_SPAN_S. The sentence contains names that clients chose, so a user interface
must make it printable.
"""

from __future__ import annotations

from collections.abc import Sequence

from kgctl.model.groups import REBALANCING, MemberRow
from kgctl.model.health import Health, Judgement
from kgctl.model.topic_partition import TopicPartition
from kgctl.watch.figures import counted, rate, span
from kgctl.watch.rates import eta_s
from kgctl.watch.tracker import GroupTracker

# A partition with lag is stalled if its commit has not moved for this long; a group with lag is stopped if it has had no
# members for this long. Kafka Connect sinks and many jobs with checkpoints commit once a minute.
STALLED_S = 90.0
# A member is silent if its last heartbeat is older than this share of its session timeout,
SILENT_SHARE = 0.5
# and older than this: a client with Kafka's default interval of 3 s may merely be late,
HEARTBEAT_MS = 4_000
# unless the session is so short that it would time out first.
SILENT_SHARE_AT_MOST = 0.75
# Snapshots must cover this much time before growth of the lag means anything.
GROWTH_SPAN_S = 30.0
# Lag grows between two commits (every 5 s by default) without meaning. It must exceed the records of this many seconds.
GROWTH_S = 6.0
# A lag of more than the records of this many seconds is LAGGING even if it does not grow, unless it shrinks
BEHIND_S = 90.0
# because the group consumes this many times as fast as records arrive.
CATCHING_UP = 1.1
NAMED = 3
# During a rebalance, members in these phases have done their part.
_PRESENT = {"PreparingRebalance": ("joined",), "CompletingRebalance": ("synced",)}


def health(tracker: GroupTracker) -> Judgement:
    """The health word and its reason; what people must act on first takes precedence. See the constants for the limits."""
    group = tracker.group
    if group is None:
        return Judgement(Health.UNKNOWN, "no snapshot yet")
    if group.error is not None:
        return Judgement(Health.UNKNOWN, group.error.message)
    if group.state in REBALANCING:
        return Judgement(Health.REBALANCING, _rebalancing(tracker, group.state or "", group.members))
    if silent := [member for member in group.members if is_silent(member)]:
        return Judgement(Health.SILENT, _silent(silent))
    lag = tracker.lag or 0
    if lag and not group.members:
        if (judgement := _without_members(tracker, lag)) is not None:
            return judgement
    elif tracker.stalled_since and (judgement := _stalled(tracker)) is not None:
        return judgement
    if tracker.failed is not None and tracker.failed.error is not None:
        return Judgement(
            Health.UNKNOWN, f"{tracker.failed.topic} {tracker.failed.partition}: {tracker.failed.error.message}"
        )
    return _by_throughput(tracker, lag) if lag else Judgement(Health.OK, _without_lag(tracker, bool(group.members)))


def is_silent(member: MemberRow) -> bool:
    """Whether the last heartbeat is too old. A member that has joined and waits for the others sends no heartbeats."""
    age_ms, session_ms = member.heartbeat_age_ms, member.session_timeout_ms
    if age_ms is None or not session_ms or age_ms <= session_ms * SILENT_SHARE or member.phase == "joined":
        return False
    return age_ms > min(HEARTBEAT_MS, session_ms * SILENT_SHARE_AT_MOST)


def _rebalancing(tracker: GroupTracker, state: str, members: Sequence[MemberRow]) -> str:
    text = state + _since(tracker.state_s, is_least=tracker.is_state_s_least)
    present = _PRESENT.get(state, ())
    if not present or any(member.phase is None for member in members):
        return f"{text}, {counted(len(members), 'member')}"
    missing = [member for member in members if member.phase not in present]
    text += f": {len(members) - len(missing)} of {counted(len(members), 'member')} {present[0]}"
    return f"{text}, waiting for {_named([_with_silence(member) for member in missing])}" if missing else text


def _since(seconds: float, *, is_least: bool) -> str:
    """A clause such as " for at least 3 s"; "" right after the first snapshot, which shows nothing of the past."""
    return "" if is_least and seconds < 1 else f" for {'at least ' if is_least else ''}{span(seconds)}"


def _silent(silent: Sequence[MemberRow]) -> str:
    return _named([f"{_with_silence(member)}, evicted in {span(evicted_in_s(member) or 0.0)}" for member in silent])


def evicted_in_s(member: MemberRow) -> float | None:
    """Seconds until the coordinator evicts a member that stays silent; None if the cluster does not report heartbeats."""
    if member.heartbeat_age_ms is None or not member.session_timeout_ms:
        return None
    return max(0, member.session_timeout_ms - member.heartbeat_age_ms) / 1000


def _with_silence(member: MemberRow) -> str:
    name = member.consumer_id or "a member"
    return f"{name}: no heartbeat for {span((member.heartbeat_age_ms or 0) / 1000)}" if is_silent(member) else name


def _named(texts: Sequence[str]) -> str:
    more = len(texts) - NAMED
    return ", ".join(texts[:NAMED]) + (f" and {more:,} more" if more > 0 else "")


def _without_members(tracker: GroupTracker, lag: int) -> Judgement | None:
    """None if commits moved a moment ago: some consumer reads without being a member."""
    if tracker.moved_at_s is not None and tracker.at_s - tracker.moved_at_s < STALLED_S:
        return None
    since = _since(tracker.memberless_s, is_least=tracker.is_memberless_s_least)
    text = f"no members{since}, lag {lag:,}"
    return Judgement(Health.LAGGING if tracker.memberless_s < STALLED_S else Health.STOPPED, text)


def _stalled(tracker: GroupTracker) -> Judgement | None:
    stalled = {key for key, since_s in tracker.stalled_since.items() if tracker.at_s - since_s >= STALLED_S}
    if not stalled or tracker.group is None:
        return None
    rows = [row for row in tracker.group.partitions if (row.topic, row.partition) in stalled and row.lag is not None]
    if not rows:
        return None
    worst = max(rows, key=lambda row: row.lag or 0)
    since_s = tracker.at_s - tracker.stalled_since[TopicPartition(worst.topic or "", worst.partition or 0)]
    owner = f"owned by {worst.consumer_id}" if worst.consumer_id else "owned by no member"
    text = f"{worst.topic} {worst.partition} ({owner}) has not moved for {span(since_s)}, lag {worst.lag or 0:,}"
    if len(rows) > 1:
        text += f"; {counted(len(rows) - 1, 'other partition')} likewise"
    return Judgement(Health.STALLED, text)


def _by_throughput(tracker: GroupTracker, lag: int) -> Judgement:
    throughput = tracker.throughput
    rate_in, rate_out = throughput.rate_in, throughput.rate_out
    if rate_in is None or rate_out is None:
        return Judgement(Health.OK, f"lag {lag:,}; whether it grows is not known yet")
    text = f"{rate(rate_in)} in, {rate(rate_out)} out"
    if throughput.span_s >= GROWTH_SPAN_S and rate_in:
        # Without any commit this is the time between two commits, or the group will be STALLED soon.
        is_growing = throughput.records_in - throughput.records_out > GROWTH_S * rate_in and throughput.is_lag_rising()
        if throughput.records_out and is_growing:
            return Judgement(Health.LAGGING, f"lag {lag:,} grows by {rate(rate_in - rate_out)}: {text}")
        if lag > BEHIND_S * rate_in and rate_out < CATCHING_UP * rate_in:
            return Judgement(
                Health.LAGGING, f"lag {lag:,} equals {span(lag / rate_in)} of records and does not shrink: {text}"
            )
    left_s = eta_s(lag, rate_in, rate_out)
    if left_s is not None and throughput.span_s >= GROWTH_SPAN_S and rate_out > CATCHING_UP * rate_in:
        return Judgement(Health.OK, f"lag {lag:,} shrinks, {span(left_s)} left: {text}")
    return Judgement(Health.OK, f"lag {lag:,}: {text}")


def _without_lag(tracker: GroupTracker, has_members: bool) -> str:
    if tracker.lag is None:
        text = "no committed offsets are known" if has_members else "no members"
    else:
        text = "no lag" if has_members else "no members, no lag"
    if tracker.left_over_lag:
        text += f"; {tracker.left_over_lag:,} records in topics that no member subscribes to"
    return text
