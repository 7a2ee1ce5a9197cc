"""Faults of groups that change their type, which the simulated worlds of migrations must show."""

from __future__ import annotations

from tests.mutation.faults import Fault

WORLDS = ("tests/broker/cores/groups/consumer/test_migration_simulation.py",)
MEMBERS = ("tests/broker/cores/groups/consumer/test_classic_members.py",)
UPGRADES = ("tests/broker/cores/groups/consumer/test_upgrade.py",)


def _fault(name: str, path: str, right: str, wrong: str, tests: tuple[str, ...] = WORLDS) -> Fault:
    return Fault(f"migration: {name}", f"cores/groups/consumer/{path}.py", right, wrong, tests)


MIGRATION_FAULTS = (
    _fault(
        "an epoch that a JoinGroup was answered with comes back after a downgrade",
        "downgrade",
        "    epoch = group.generation\n",
        "    epoch = before\n",
    ),
    _fault(
        "a downgrade begins with the first generation",
        "downgrade",
        "group.group_id, group.generation, [_",
        "group.group_id, 0, [_",
    ),
    _fault(
        "a downgrade loses the committed offsets",
        "downgrade",
        "    for record in group.tombstones(step.wall_ms, keeps_offsets=True):\n",
        "    for record in group.tombstones(step.wall_ms):\n",
    ),
    _fault(
        "no rebalance follows the downgrade",
        "departures",
        "        rebalance.prepare(step, downgrade(step, group, {member.member_id for member in members}))\n",
        "        downgrade(step, group, {member.member_id for member in members})\n",
    ),
    _fault(
        "what a cooperative member has not given up is free after the upgrade",
        "upgrade",
        "        _hold(made, made.members[member_id], claimed)\n",
        "        pass\n",
    ),
    _fault(
        "an upgrade goes back to the generation before a crash",
        "upgrade",
        "step.next_generation(group) - 1",
        "group.generation",
        UPGRADES,
    ),
    _fault(
        "classic members own nothing after the upgrade", "upgrade", "    if member.assignment:\n", "    if False:\n"
    ),
    _fault(
        "an upgrade loses the committed offsets",
        "upgrade",
        "*group.tombstones(wall_ms, keeps_offsets=True)",
        "*group.tombstones(wall_ms)",
    ),
    _fault(
        "the upgrade gives classic members no session",
        "upgrade",
        "            step.timers.set((SESSION, stored.group_id, member_id), step.now_ms + member.session_timeout_ms)\n",
        "",
    ),
    _fault(
        "a classic member is not asked to join again",
        "classic_members",
        "    if is_due:\n        _await_join(step, group, member)\n        return ErrorCode.REBALANCE_IN_PROGRESS\n",
        "",
    ),
    _fault(
        "a cooperative member that joins again has given up everything",
        "classic_members",
        "    owned = by_id(subscription.owned_partitions, step.coordinator.topics)\n",
        "    owned: dict[bytes, list[int]] = {}\n",
    ),
    _fault(
        "a classic member is assigned what another one has not given up",
        "classic_members",
        "encoded_assignment(member.current.assigned, ",
        "encoded_assignment(group.target_of(member), ",
    ),
    _fault(
        "a classic member keeps the regular expression of its time as a consumer",
        "classic_members",
        '            topic_regex="",\n',
        "",
        MEMBERS,
    ),
)
