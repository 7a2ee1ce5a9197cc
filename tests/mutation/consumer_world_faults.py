"""Faults of the coordinator of consumer groups, which the simulated worlds must show."""

from __future__ import annotations

from tests.mutation.faults import Fault

WORLDS = ("tests/broker/cores/groups/consumer/test_simulation.py",)


def _fault(name: str, path: str, right: str, wrong: str) -> Fault:
    return Fault(name, f"cores/groups/consumer/{path}", right, wrong, WORLDS)


CONSUMER_WORLD_FAULTS = (
    _fault(
        "a member gets partitions that another one has not given up",
        "reconciliation.py",
        "frozenset(partition for partition in missing if owner_epoch(topic_id, partition) == NO_OWNER)",
        "missing",
    ),
    _fault(
        "a heartbeat without partitions confirms a revocation",
        "reconciliation.py",
        "    if reported is None:\n        return True\n",
        "    if reported is None:\n        return False\n",
    ),
    _fault(
        "partitions that a member is to give up are free at once",
        "group.py",
        "        self._take(current.pending_revocation, current.member_epoch)\n",
        "",
    ),
    _fault(
        "a member that waits for partitions is Stable",
        "reconciliation.py",
        "state = MemberState.UNRELEASED_PARTITIONS if step.is_waiting else MemberState.STABLE",
        "state = MemberState.STABLE",
    ),
    _fault(
        "a heartbeat of a later epoch is accepted",
        "heartbeat.py",
        "    if received == current.member_epoch:\n        return\n",
        "    if received >= current.member_epoch:\n        return\n",
    ),
    _fault(
        "the answer to a full heartbeat may leave out the assignment",
        "heartbeat.py",
        "if not request.member_epoch or is_full or has_changed else None",
        "if not request.member_epoch or has_changed else None",
    ),
    _fault(
        "a heartbeat renews the session only if the member moves",
        "heartbeat.py",
        "    group.heartbeats_ms[member.member_id] = step.now_ms\n",
        "    group.heartbeats_ms[member.member_id] = step.now_ms\n    if not has_moved:\n        return\n",
    ),
    _fault(
        "a group epoch ends with the removal of a member",
        "departures.py",
        "GroupEpochRecord(group_id, generation + 1, hashed, step.wall_ms)",
        "GroupEpochRecord(group_id, generation, hashed, step.wall_ms)",
    ),
    _fault(
        "a member that keeps its partitions stays in the group",
        "departures.py",
        "    if group.revoking.pop(member_id, None) == member.current.member_epoch:\n",
        "    if group.revoking.pop(member_id, None) is None:\n",
    ),
    _fault(
        "a restart forgets who has to give up partitions",
        "recovery.py",
        "        if member.current.state == MemberState.UNREVOKED_PARTITIONS:\n",
        "        if False:\n",
    ),
    _fault(
        "a restart gives members no session",
        "recovery.py",
        "        step.timers.set((SESSION, group.group_id, member_id), step.now_ms + session_ms)\n",
        "",
    ),
    _fault(
        "a static member is replaced while it is there",
        "statics.py",
        "    if is_in_use:\n",
        "    if False:\n",
    ),
    _fault(
        "a static member that returns is not given its target",
        "statics.py",
        "        TargetRecord(group_id, member_id, target, wall_ms),\n",
        "",
    ),
    _fault(
        "topics that change do not change the assignment",
        "advance.py",
        "is_bumped or (is_outdated and hashed != group.metadata_hash)",
        "is_bumped",
    ),
    _fault(
        "a topic that is created matches no regular expression",
        "regexes.py",
        "    is_due |= group.regex_version < step.coordinator.topics.created\n",
        "",
    ),
    _fault(
        "targets of other members are not stored",
        "target.py",
        "        if target is not stored and (stored is None or not is_same(target, stored)):\n",
        "        if stored is None:\n",
    ),
    _fault(
        "the epoch of a commit is not checked",
        "group.py",
        "        if generation == member.current.member_epoch:\n            return ErrorCode.NONE\n        return ErrorCode.ILLEGAL_GENERATION if is_classic or",
        "        if generation <= member.current.member_epoch:\n            return ErrorCode.NONE\n        return ErrorCode.ILLEGAL_GENERATION if is_classic or",
    ),
    _fault(
        "a member that was removed has its partitions after a restart",
        "hard_state.py",
        "        found.remove_member(record.member_id)\n",
        "        found.remove_member(record.member_id) if not hard.recovering else None\n",
    ),
    _fault(
        "a regular expression that no member has left stays",
        "departures.py",
        "if group.expressions.get(regex) == found]",
        "if False]",
    ),
)
