"""Silent members, and sentences about them and about rebalances that wait for members."""

from __future__ import annotations

from collections.abc import Sequence

from kgctl.model.groups import MemberRow
from kgctl.watch.figures import counted, span
from kgctl.watch.tracker import GroupTracker

# A member is silent if its last heartbeat is older than this share of its session timeout,
SILENT_SHARE = 0.5
# and older than this: a client with Kafka's default interval of 3 s may merely be late,
HEARTBEAT_MS = 4_000
# unless the session is so short that it would time out first.
SILENT_SHARE_AT_MOST = 0.75
NAMED = 3
# During a rebalance, members in these phases have done their part.
_PRESENT = {"PreparingRebalance": ("joined",), "CompletingRebalance": ("synced",)}


def is_silent(member: MemberRow) -> bool:
    """Whether the last heartbeat is too old. A member that has joined and waits for the others sends no heartbeats."""
    age_ms, session_ms = member.heartbeat_age_ms, member.session_timeout_ms
    if age_ms is None or not session_ms or age_ms <= session_ms * SILENT_SHARE or member.phase == "joined":
        return False
    return age_ms > min(HEARTBEAT_MS, session_ms * SILENT_SHARE_AT_MOST)


def evicted_in_s(member: MemberRow) -> float | None:
    """Seconds until the coordinator evicts a member that stays silent; None if the cluster does not report heartbeats."""
    if member.heartbeat_age_ms is None or not member.session_timeout_ms:
        return None
    return max(0, member.session_timeout_ms - member.heartbeat_age_ms) / 1000


def silent_members(members: Sequence[MemberRow]) -> str:
    silent = [member for member in members if is_silent(member)]
    return _named([f"{_with_silence(member)}, evicted in {span(evicted_in_s(member) or 0.0)}" for member in silent])


def rebalancing(tracker: GroupTracker) -> str:
    """The state of a rebalance, for how long, and whom it waits for."""
    group = tracker.group
    assert group is not None
    state, members = group.state or "", group.members
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


def _with_silence(member: MemberRow) -> str:
    name = member.consumer_id or "a member"
    return f"{name}: no heartbeat for {span((member.heartbeat_age_ms or 0) / 1000)}" if is_silent(member) else name


def _named(texts: Sequence[str]) -> str:
    more = len(texts) - NAMED
    return ", ".join(texts[:NAMED]) + (f" and {more:,} more" if more > 0 else "")
