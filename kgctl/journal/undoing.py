"""The plan that takes a change of groups back; the entry of the journal and the state of the groups are arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from broker.light_dataclasses import dataclass, field, replace
from kgctl.client.admin.reset import MOVED
from kgctl.client.net.errors import KgctlError, Precondition
from kgctl.journal.execution import Checked, check
from kgctl.journal.reversal import obstacle
from kgctl.model.changes import DONE, FAILED, GroupChange
from kgctl.model.failure import RowError
from kgctl.model.groups import SHARE
from kgctl.model.plans import DELETION, OFFSETS, ChangeRow, Entry, GroupPlan, Move, Plan, StoredGroup, StoredOffset
from kgctl.model.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin


# How a share group that does not exist gets start offsets.
MADE_AGAIN = "Share group '{}' does not exist: a member joins and leaves, which makes it."


@dataclass(slots=True)
class Undo:
    """`problems`: why a group should not be changed without force. `notes`: what cannot be taken back."""

    groups: list[GroupPlan] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)
    errors: dict[str, KgctlError] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def undo_of(entry: Entry, now: Mapping[str, StoredGroup | KgctlError], epochs: Mapping[TopicPartition, int]) -> Undo:
    """Give each committed offset the value that it had before. What already has it is left out."""
    undo = Undo()
    before = {group.group: group for group in entry.before.groups}
    for plan in entry.plan.groups:
        if plan.action not in (OFFSETS, DELETION):
            undo.notes.append(
                f"Group {plan.group!r}: a {plan.action} of members cannot be undone; consumers that run rejoin by "
                "themselves."
            )
            continue
        current = now[plan.group]
        if isinstance(current, KgctlError):
            undo.errors[plan.group] = current
            continue
        if plan.has_members:
            undo.notes.append(f"Group {plan.group!r}: members that were evicted rejoin by themselves if they run.")
        moves = _moves(plan, before.get(plan.group, StoredGroup(plan.group, None)), current, epochs, undo)
        was_share = _type_before(plan, before) == SHARE
        if moves and was_share and (refusal := _share_refusal(plan.group, current, moves)):
            undo.errors[plan.group] = refusal
        elif moves:
            kind = current.type
            if was_share and current.state is None:
                kind = SHARE
                undo.notes.append(MADE_AGAIN.format(plan.group))
            undo.groups.append(GroupPlan(plan.group, OFFSETS, current.state, kind, current.members, moves))
    return undo


def _type_before(plan: GroupPlan, before: Mapping[str, StoredGroup]) -> str | None:
    """The type of a group before the change."""
    return before[plan.group].type if plan.group in before else plan.type


def _share_refusal(group: str, current: StoredGroup, moves: Sequence[Move]) -> Precondition | None:
    """Why the start offsets of a share group cannot be given back."""
    if current.state is not None and current.type != SHARE:
        return Precondition(f"Share group '{group}' was deleted, and a group of type {current.type} has its name now.")
    from kgctl.client.admin.share_offsets import part_of_topic

    deleted = [move.key for move in moves if move.new_offset is None]
    refusals = (part_of_topic(group, key, current.committed(), deleted) for key in deleted)
    return next((refusal for refusal in refusals if refusal), None)


def offset_keys(entry: Entry) -> list[TopicPartition]:
    return sorted({move.key for group in entry.plan.groups for move in group.moves})


def _moves(
    plan: GroupPlan,
    before: StoredGroup,
    current: StoredGroup,
    epochs: Mapping[TopicPartition, int],
    undo: Undo,
) -> tuple[Move, ...]:
    old, there = before.committed(), current.committed()
    moves = []
    for move in plan.moves:
        was, present = old.get(move.key), there.get(move.key)
        if _value(was) == _value(present):
            continue
        offset = None if present is None else present.offset
        if offset not in (move.new_offset, None if was is None else was.offset):
            undo.problems.setdefault(
                plan.group,
                f"group {plan.group!r}, {move.key}: committed {_text(offset)} now, not {_text(move.new_offset)} as "
                "the change left it; add --force to replace it",
            )
        moves.append(to_stored(move.key, offset, was, epochs))
    return tuple(moves)


def to_stored(
    key: TopicPartition, old_offset: int | None, stored: StoredOffset | None, epochs: Mapping[TopicPartition, int]
) -> Move:
    """Move to a stored offset, with its metadata. A leader epoch that the partition does not have would stall consumers."""
    move = Move(key.topic, key.partition, old_offset, None)
    if stored is None:
        return move
    epoch = stored.leader_epoch
    if epoch is not None and epoch > epochs.get(key, -1):
        epoch = None
    return replace(move, new_offset=stored.offset, leader_epoch=epoch, metadata=stored.metadata)


def _value(stored: StoredOffset | None) -> tuple[int, str | None] | None:
    return None if stored is None else (stored.offset, stored.metadata)


def _text(offset: int | None) -> str:
    return "nothing" if offset is None else str(offset)


def created_groups(entry: Entry) -> list[str]:
    """The groups that did not exist before the change gave them offsets."""
    before = {group.group: group for group in entry.before.groups}
    return [
        plan.group
        for plan in entry.plan.groups
        if plan.action == OFFSETS and before.get(plan.group, StoredGroup(plan.group, None)).state in (None, "Dead")
    ]


def remove_created(admin: Admin, done: list[ChangeRow], created: Sequence[str]) -> list[ChangeRow]:
    """Delete groups that a change created and that have neither offsets nor members any more; also their rows."""
    failed = {row.group for row in done if row.error}
    names = [name for name in dict.fromkeys(row.group for row in done) if name in created and name not in failed]
    if not names:
        return done
    states = admin.group_states(names)
    empty = [
        one.group
        for one in states.values()
        if isinstance(one, StoredGroup) and one.state is not None and not one.has_members and not one.offsets
    ]
    deleted = admin.delete_groups([GroupChange(name, None) for name in empty]) if empty else []
    note = "the change created it"
    return done + [
        ChangeRow(row.group, DELETION, note=note, status=FAILED if row.error else DONE, error=row.error)
        for row in deleted
    ]


def can_undo(entry: Entry) -> bool:
    """Whether at least a part of the change can be taken back."""
    return any(group.action in (OFFSETS, DELETION) for group in entry.plan.groups) or any(
        obstacle(item) is None for item in entry.items
    )


def checked_undo(
    plan: Plan, states: Mapping[str, StoredGroup | KgctlError], found: Undo, *, force: bool
) -> Sequence[Checked]:
    """The groups are compared with the change, not with a plan that was just made from them."""
    checked = check(plan, states, force=True)
    if force:
        return checked
    problems = {group: RowError(MOVED, sentence) for group, sentence in found.problems.items()}
    return [replace(one, error=problems.get(one.plan.group, one.error)) for one in checked]
