"""Carries out plans: compares each group with its plan, changes it, and says what became of each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from broker.light_dataclasses import dataclass, replace
from kgctl.client.admin.reset import MOVED, not_inactive
from kgctl.client.net.errors import KgctlError, Precondition
from kgctl.journal.comparison import what_moved, with_state
from kgctl.model.changes import (
    DONE,
    FAILED,
    PLANNED,
    SKIPPED,
    GroupChange,
    MemberChange,
    OffsetChange,
    ResetPlan,
    ResetRow,
)
from kgctl.model.failure import RowError
from kgctl.model.groups import Committed, MemberRow
from kgctl.model.plans import (
    DELETION,
    OFFSETS,
    REBALANCE,
    REMOVAL,
    ChangeRow,
    GroupPlan,
    Plan,
    StoredGroup,
    StoredMember,
)
from kgctl.model.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin

States = Mapping[str, StoredGroup | KgctlError]


@dataclass(frozen=True, slots=True)
class Checked:
    """A plan for one group that has been compared with the group; an error says why it cannot be applied.

    `details` are errors of single partitions.
    """

    plan: GroupPlan
    error: RowError | None = None
    details: Mapping[TopicPartition, RowError] | None = None

    @property
    def is_good(self) -> bool:
        return self.error is None and not self.details


def check(plan: Plan, states: States, *, force: bool = False) -> list[Checked]:
    """Compare the groups with the plan. With `force`, the plan is made again for the groups as they are."""
    found = []
    for group in plan.groups:
        now = states[group.group]
        if isinstance(now, KgctlError):
            found.append(Checked(group, now.as_row()))
            continue
        difference = None if force else what_moved(group, now)
        if difference is not None:
            hint = "; make the plan again, or add --force"
            found.append(Checked(group, RowError(MOVED, difference + hint)))
            continue
        current = with_state(group, now)
        found.append(Checked(current, refusal(current)))
    return found


def refusal(plan: GroupPlan, *, drains: bool = False) -> RowError | None:
    """What the state of the group forbids. `drains`: the command has --drain."""
    if plan.action == OFFSETS and plan.has_members and any(move.new_offset is not None for move in plan.moves):
        members = tuple(_member_row(plan.group, one) for one in plan.members)
        reset = ResetPlan(plan.group, plan.state, (), plan.type, members)
        return (not_inactive(reset, "add --drain to evict them") if drains else not_inactive(reset)).as_row()
    if plan.action == DELETION and plan.has_members:
        return Precondition(
            f"group {plan.group!r} is {plan.state}: a group that has members cannot be deleted"
        ).as_row()
    return None


def rows_of(checked: Sequence[Checked]) -> list[ChangeRow]:
    """The steps of the plans; an error of a group is that of each of its steps."""
    rows = []
    for one in checked:
        for row in _steps(one.plan):
            key = None if row.topic is None or row.partition is None else TopicPartition(row.topic, row.partition)
            error = one.error or ((one.details or {}).get(key) if key else None)
            rows.append(replace(row, status=FAILED, error=error) if error else row)
        if one.error and not _steps(one.plan):
            rows.append(ChangeRow(one.plan.group, one.plan.action, status=FAILED, error=one.error))
    return rows


def _steps(plan: GroupPlan) -> list[ChangeRow]:
    rows = []
    if plan.action in (DELETION, REBALANCE):
        rows.append(ChangeRow(plan.group, plan.action))
    rows += [
        ChangeRow(plan.group, plan.action, member=member.group_instance_id or member.member_id)
        for member in plan.leaving
    ]
    if plan.action == DELETION:
        return rows
    for move in plan.moves:
        is_known = move.old_offset is not None and move.new_offset is not None
        delta = move.new_offset - move.old_offset if is_known else None  # type: ignore[operator]
        note = move.note or ("deleted: nothing was committed before" if move.new_offset is None else None)
        row = ChangeRow(plan.group, plan.action, move.topic, move.partition, None, move.old_offset, move.new_offset)
        rows.append(replace(row, delta=delta, note=note))
    return rows


def execute(admin: Admin, checked: Sequence[Checked], reason: str | None) -> list[ChangeRow]:
    """Carry out the plans that can be; one that fails does not stop the others."""
    good = [one.plan for one in checked if one.is_good]
    outcomes: dict[str, RowError | dict[object, RowError] | None] = {}
    outcomes |= _change_offsets(admin, [plan for plan in good if plan.action == OFFSETS])
    outcomes |= _delete(admin, [plan.group for plan in good if plan.action == DELETION])
    for plan in good:
        if plan.action == REMOVAL:
            outcomes[plan.group] = _remove(admin, plan, reason)
        elif plan.action == REBALANCE:
            outcomes[plan.group] = _rebalance(admin, plan, reason)
    rows = []
    for one in checked:
        if not one.is_good:
            rows += [row if row.error else replace(row, status=SKIPPED) for row in rows_of([one])]
            continue
        outcome = outcomes[one.plan.group]
        for row in _steps(one.plan):
            error = outcome.get(_key(row)) if isinstance(outcome, dict) else outcome
            rows.append(replace(row, status=FAILED if error else DONE, error=error))
    return rows


def _key(row: ChangeRow) -> object:
    return row.member if row.topic is None or row.partition is None else TopicPartition(row.topic, row.partition)


def _change_offsets(admin: Admin, plans: Sequence[GroupPlan]) -> dict[str, RowError | dict[object, RowError] | None]:
    """Commit first, then delete what has no new offset, unless a commit failed."""
    outcomes: dict[str, RowError | dict[object, RowError] | None] = {}
    commits = [(plan, _as_reset(plan)) for plan in plans]
    resets = [reset for _, reset in commits if reset.rows]
    wanted = {plan.group: _commits(plan) for plan in plans}
    for done in _guarded(admin, resets, wanted):
        failed = {TopicPartition(row.topic, row.partition or 0): row.error for row in done.rows if row.error}
        outcomes[done.group] = done.error or {key: error for key, error in failed.items() if error is not None}
    rows = [
        OffsetChange(plan.group, move.topic, move.partition, move.old_offset)
        for plan in plans
        if not outcomes.get(plan.group)
        for move in plan.moves
        if move.new_offset is None and move.old_offset is not None
    ]
    for row in admin.delete_offsets(rows) if rows else ():
        if row.error:
            errors = outcomes.get(row.group) or {}
            assert isinstance(errors, dict)
            assert row.topic is not None
            assert row.partition is not None
            outcomes[row.group] = errors | {TopicPartition(row.topic, row.partition): row.error}
    return {plan.group: outcomes.get(plan.group) for plan in plans}


def _guarded(
    admin: Admin, resets: Sequence[ResetPlan], commits: Mapping[str, Mapping[TopicPartition, Committed]]
) -> list[ResetPlan]:
    try:
        return admin.apply_resets(resets, commits) if resets else []
    except KgctlError as error:
        return [replace(reset, error=error.as_row()) for reset in resets]


def _as_reset(plan: GroupPlan) -> ResetPlan:
    rows = tuple(
        ResetRow(plan.group, move.topic, move.partition, move.old_offset, move.new_offset, None, status=PLANNED)
        for move in plan.moves
        if move.new_offset is not None
    )
    return ResetPlan(plan.group, plan.state, rows, plan.type)


def _commits(plan: GroupPlan) -> dict[TopicPartition, Committed]:
    return {
        move.key: Committed(move.new_offset, move.leader_epoch, move.metadata)
        for move in plan.moves
        if move.new_offset is not None
    }


def _delete(admin: Admin, groups: Sequence[str]) -> dict[str, RowError | dict[object, RowError] | None]:
    rows = [GroupChange(group, None) for group in groups]
    return {row.group: row.error for row in (admin.delete_groups(rows) if rows else ())}


def _remove(admin: Admin, plan: GroupPlan, reason: str | None) -> RowError | dict[object, RowError] | None:
    rows = [
        MemberChange(plan.group, one.member_id, one.group_instance_id, one.host, one.client_id) for one in plan.leaving
    ]
    try:
        done = admin.remove_members(plan.group, rows, reason or "")
    except KgctlError as error:
        return error.as_row()
    return {row.group_instance_id or row.consumer_id: row.error for row in done if row.error}


def _rebalance(admin: Admin, plan: GroupPlan, reason: str | None) -> RowError | None:
    try:
        rows = admin.request_rebalances(admin.plan_rebalance(plan.group, evict=plan.evict), reason or "")
    except KgctlError as error:
        return error.as_row()
    return next((row.error for row in rows if row.error), None)


def _member_row(group: str, member: StoredMember) -> MemberRow:
    return MemberRow(group, member.member_id, member.group_instance_id, member.host, member.client_id, None, None)
