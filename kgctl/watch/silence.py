"""Silent members, and words for members: the owner of a partition, silent ones, and those that a rebalance waits for.

A rebalance of a consumer group (KIP-848) waits for members that have not given up partitions, or not received theirs.
"""

from __future__ import annotations

from collections.abc import Sequence

from kgctl.model.groups import CONSUMER, SHARE, GroupDescription, MemberRow, PartitionLag, TopicPartitions
from kgctl.model.reconciliation import AWAY, RECONCILING, REVOKING, STABLE, WAITING
from kgctl.watch.figures import counted, span
from kgctl.watch.restarts import client_of
from kgctl.watch.rows import key_of
from kgctl.watch.tracker import GroupTracker

# A member is silent if its last heartbeat is older than this share of its session timeout,
SILENT_SHARE = 0.5
# and older than this: a client with Kafka's default interval of 3 s may merely be late,
HEARTBEAT_MS = 4_000
# unless the session is so short that it would time out first.
SILENT_SHARE_AT_MOST = 0.75
NAMED = 3
# The phases of members of a consumer group that have not reached their targets; first those on which others wait.
_UNFINISHED = (REVOKING, AWAY, RECONCILING, WAITING)
# The longest list of partitions in a sentence.
LONGEST_LIST = 40
# During a rebalance, members in these phases have done their part.
_PRESENT = {"PreparingRebalance": ("joined",), "CompletingRebalance": ("synced",), "Reconciling": (STABLE,)}
# What they have done, where it is not the name of the phase.
_DONE = {"Reconciling": "reconciled"}


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


def silent_briefly(members: Sequence[MemberRow]) -> str:
    silent = [member for member in members if is_silent(member)]
    first = min(silent, key=lambda member: evicted_in_s(member) or 0.0)
    who = _short_name(first) if len(silent) == 1 else counted(len(silent), "member")
    return f"evicted in {span(evicted_in_s(first) or 0.0)}: {who}"


def rebalancing_briefly(group: GroupDescription) -> str:
    """As "2/3 joined, waits for app-3"; "" if the cluster does not report who has joined."""
    missing = _missing(group)
    if missing is None:
        return ""
    text = f"{len(group.members) - len(missing)}/{len(group.members)} {_done(group)}"
    if not missing:
        return text
    if group.type == CONSUMER:
        return f"{text}, {_reconciling_briefly(missing)}"
    return f"{text}, waits for {_short_name(missing[0]) if len(missing) == 1 else len(missing)}"


def rebalancing(tracker: GroupTracker) -> str:
    """The state of a rebalance, for how long, and whom it waits for."""
    group = tracker.group
    assert group is not None
    state, members = group.state or "", group.members
    text = state + _since(tracker.state_s, is_least=tracker.is_state_s_least)
    missing = _missing(group)
    if missing is None:
        return f"{text}, {counted(len(members), 'member')}"
    text += f": {len(members) - len(missing)} of {counted(len(members), 'member')} {_done(group)}"
    if group.type == CONSUMER:
        return "; ".join([text, *reconciling_members(group)])
    return f"{text}, waiting for {_named([_with_silence(member) for member in missing])}" if missing else text


def reconciling_members(group: GroupDescription) -> list[str]:
    """A clause for each member of a consumer group that has not reached its target; first those on which others wait."""
    missing = sorted((one for one in group.members if one.phase not in (None, STABLE)), key=_urgency)
    more = len(missing) - NAMED
    found = [_reconciling(member, _name_in(group, member)) for member in missing[:NAMED]]
    return [*found, *([f"{counted(more, 'other member')} likewise"] if more > 0 else [])]


def _urgency(member: MemberRow) -> int:
    # A newer broker may report phases that this version does not know.
    return _UNFINISHED.index(member.phase) if member.phase in _UNFINISHED else len(_UNFINISHED)


def _reconciling(member: MemberRow, name: str) -> str:
    if is_silent(member):
        name += f" (no heartbeat for {span((member.heartbeat_age_ms or 0) / 1000)})"
    if member.phase == REVOKING:
        return f"{name} has not given up {partitions(member.revoking)}"
    if member.phase == WAITING:
        return f"{name} waits for {partitions(member.waiting_for)}"
    if member.phase == AWAY:
        kept = f" and keeps {partitions(member.current_assignment)}" if member.current_assignment else ""
        return f"static member {name} has left{kept}"
    return f"{name} has not confirmed epoch {member.target_epoch}"


def _reconciling_briefly(missing: Sequence[MemberRow]) -> str:
    """The member that the others wait for, as "app-3 revokes 4"; of several, how many."""
    blocking = [member for member in missing if member.phase != WAITING] or list(missing)
    first = min(blocking, key=_urgency)
    if len(blocking) > 1:
        return f"waits for {len(blocking)}"
    revoked, awaited = (sum(map(len, _numbers(some))) for some in (first.revoking, first.waiting_for))
    what = {REVOKING: f"revokes {revoked}", WAITING: f"waits for {awaited}", AWAY: "is away"}
    return f"{_short_name(first)} {what.get(first.phase or '', 'is behind')}"


def _numbers(owned: Sequence[TopicPartitions] | None) -> list[tuple[int, ...]]:
    return [entry.partitions for entry in owned or ()]


def partitions(owned: Sequence[TopicPartitions] | None) -> str:
    """As "orders:0,1" or, if that is long, "12 partitions"."""
    text = ";".join(map(str, owned or ()))
    return text if len(text) <= LONGEST_LIST else counted(sum(map(len, _numbers(owned))), "partition")


def _done(group: GroupDescription) -> str:
    state = group.state or ""
    return _DONE.get(state) or _PRESENT[state][0]


def _missing(group: GroupDescription) -> Sequence[MemberRow] | None:
    """The members that a rebalance waits for; None if the cluster does not report the phases of members."""
    present = _PRESENT.get(group.state or "")
    if present is None or any(member.phase is None for member in group.members):
        return None
    return [member for member in group.members if member.phase not in present]


def _since(seconds: float, *, is_least: bool) -> str:
    """A clause such as " for at least 3 s"; "" right after the first snapshot, which shows nothing of the past."""
    return "" if is_least and seconds < 1 else f" for {'at least ' if is_least else ''}{span(seconds)}"


def holder_of(group: GroupDescription, row: PartitionLag) -> str:
    """Who has a partition, as "owned by app-3"."""
    if row.consumer_id:
        return f"owned by {owner_of(group, row)}"
    key = key_of(row)
    if group.type == SHARE:
        readers = sum(key in member.owned() for member in group.members)
        return f"read by {counted(readers, 'member') if readers else 'no member'}"
    holder = next((one for one in group.members if any(key in some.places() for some in one.revoking or ())), None)
    return "owned by no member" if holder is None else f"not given up by {_short_name(holder)}"


def owner_of(group: GroupDescription, row: PartitionLag) -> str:
    """The owner of a partition: without the UUID of its member id if no other member has that name."""
    names = {member.consumer_id: _short_name(member) for member in group.members}
    name = names.get(row.consumer_id)
    return name if name and list(names.values()).count(name) == 1 else row.consumer_id or ""


def _name_in(group: GroupDescription, member: MemberRow) -> str:
    """The instance id or the client id; with the member id if others have that name."""
    name = _short_name(member)
    is_unique = sum(_short_name(one) == name for one in group.members) == 1
    return name if is_unique else f"{name} ({member.consumer_id})"


def _short_name(member: MemberRow) -> str:
    # Ids of members of consumer groups are random.
    own = client_of(member.consumer_id or "") if member.current_epoch is None else ""
    return member.group_instance_id or own or member.client_id or "a member"


def _with_silence(member: MemberRow) -> str:
    name = member.consumer_id or "a member"
    return f"{name}: no heartbeat for {span((member.heartbeat_age_ms or 0) / 1000)}" if is_silent(member) else name


def _named(texts: Sequence[str]) -> str:
    more = len(texts) - NAMED
    return ", ".join(texts[:NAMED]) + (f" and {more:,} more" if more > 0 else "")
