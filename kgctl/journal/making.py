"""Plans of groups from the rows of commands. Pure: the state of the groups is an argument."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kgctl.model.plans import (
    DELETION,
    OFFSETS,
    PLAN,
    REBALANCE,
    REMOVAL,
    SNAPSHOT,
    VERSION,
    GroupPlan,
    Move,
    Plan,
    Snapshot,
    StoredGroup,
    StoredMember,
)
from kgctl.model.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kgctl.model.changes import GroupChange, MemberChange, OffsetChange, RebalanceRow, ResetPlan, ResetRow

States = Mapping[str, StoredGroup]


def plan_of(
    verb: str, cluster_id: str, created_ms: int, groups: Iterable[GroupPlan], reason: str | None = None
) -> Plan:
    return Plan(PLAN, VERSION, verb, cluster_id, created_ms, tuple(groups), reason or None)


def snapshot_of(cluster_id: str, taken_ms: int, groups: Iterable[StoredGroup]) -> Snapshot:
    return Snapshot(SNAPSHOT, VERSION, cluster_id, taken_ms, tuple(groups))


def of_resets(plans: Sequence[ResetPlan]) -> list[GroupPlan]:
    """The plans that have no error."""
    return [
        GroupPlan(
            plan.group,
            OFFSETS,
            plan.state,
            plan.type,
            tuple(
                sorted(
                    (StoredMember(one.consumer_id or "", one.group_instance_id, one.host, one.client_id)
                     for one in plan.members),
                    key=lambda one: one.member_id,
                )
            ),
            tuple(_move(row, row.partition) for row in plan.rows if row.partition is not None),
        )
        for plan in plans
        if plan.rows and not plan.failed
    ]  # fmt: skip


def _move(row: ResetRow, partition: int) -> Move:
    return Move(row.topic, partition, row.old_offset, row.new_offset, note=row.note)


def of_commits(group: StoredGroup, offsets: Mapping[TopicPartition, int]) -> GroupPlan:
    old = group.committed()
    moves = (Move(*key, old[key].offset if key in old else None, offset) for key, offset in sorted(offsets.items()))
    return _begin(group, OFFSETS, moves=tuple(moves))


def of_deletions(rows: Iterable[GroupChange], states: States) -> list[GroupPlan]:
    """Each group with all its committed offsets, which go with it."""
    return [
        _begin(states[row.group], DELETION, moves=_gone(states[row.group], states[row.group].committed()))
        for row in rows
        if not row.error
    ]


def of_offset_deletions(rows: Iterable[OffsetChange], states: States) -> list[GroupPlan]:
    wanted: dict[str, list[TopicPartition]] = {}
    for row in rows:
        if not row.error and row.topic is not None and row.partition is not None:
            wanted.setdefault(row.group, []).append(TopicPartition(row.topic, row.partition))
    return [_begin(states[group], OFFSETS, moves=_gone(states[group], keys)) for group, keys in wanted.items()]


def of_removals(rows: Iterable[MemberChange], states: States) -> list[GroupPlan]:
    leaving: dict[str, list[StoredMember]] = {}
    for row in rows:
        if not row.error:
            member = StoredMember(row.consumer_id, row.group_instance_id, row.host, row.client_id)
            leaving.setdefault(row.group, []).append(member)
    return [_begin(states[group], REMOVAL, leaving=tuple(members)) for group, members in leaving.items()]


def of_rebalances(rows: Iterable[RebalanceRow], states: States, *, evict: bool) -> list[GroupPlan]:
    groups = dict.fromkeys(row.group for row in rows if not row.error)
    return [_begin(states[group], REBALANCE, evict=evict) for group in groups]


def _begin(
    group: StoredGroup,
    action: str,
    *,
    moves: tuple[Move, ...] = (),
    leaving: tuple[StoredMember, ...] = (),
    evict: bool = False,
) -> GroupPlan:
    return GroupPlan(group.group, action, group.state, group.type, group.members, moves, leaving, evict)


def _gone(group: StoredGroup, keys: Iterable[TopicPartition]) -> tuple[Move, ...]:
    offsets = group.committed()
    return tuple(Move(key.topic, key.partition, offsets[key].offset, None) for key in sorted(keys) if key in offsets)
