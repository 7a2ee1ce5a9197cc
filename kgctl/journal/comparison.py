"""How a group differs from what a plan says about it. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from broker.light_dataclasses import replace
from kgctl.model.groups import EMPTY_STATES
from kgctl.model.plans import DELETION, OFFSETS, GroupPlan, StoredGroup, StoredMember
from kgctl.model.topic_partition import TopicPartition

SINCE = "as when the plan was made"


def what_moved(plan: GroupPlan, now: StoredGroup) -> str | None:
    """A sentence about the first difference that matters to the plan; None if there is none.

    A plan for offsets of a group that had members can only be applied once they have left: that is no difference.
    """
    about = f"group {plan.group!r}"
    if _exists(plan.state) and now.state is None:
        return f"{about} was deleted since the plan was made"
    if plan.state is None and now.state is not None:
        return f"{about} was created since the plan was made: it is {now.state}"
    if not (plan.action == OFFSETS and plan.has_members and not now.has_members):
        difference = _of_members(plan, now)
        if difference:
            return f"{about} {difference}"
    return _of_offsets(plan, now)


def with_state(plan: GroupPlan, now: StoredGroup) -> GroupPlan:
    """The plan as if it had been made now: what is there now counts as old."""
    offsets = now.committed()
    moves = {move.key: move for move in plan.moves}
    moved = [replace(move, old_offset=offsets[key].offset if key in offsets else None) for key, move in moves.items()]
    leaving = plan.leaving
    if leaving:
        there = {_identity(member) for member in now.members}
        leaving = tuple(member for member in leaving if _identity(member) in there)
    return replace(
        plan, state=now.state, type=now.type or plan.type, members=now.members, moves=tuple(moved), leaving=leaving
    )


def _exists(state: str | None) -> bool:
    return state not in (None, "Dead")


def _of_members(plan: GroupPlan, now: StoredGroup) -> str | None:
    is_same = plan.state == now.state or {plan.state, now.state} <= {None, *EMPTY_STATES}
    if not is_same:
        members = f" with {_counted(len(now.members))}" if now.members else ""
        return f"is {now.state}{members} now, not {plan.state} {SINCE}"
    before, after = ({_identity(member): member for member in some} for some in (plan.members, now.members))
    joined = [_name(after[key]) for key in after if key not in before]
    left = [_name(before[key]) for key in before if key not in after]
    parts = [f"{_named(names)} {verb}" for names, verb in ((joined, "joined"), (left, "left")) if names]
    return f"has changed since the plan was made: {' and '.join(parts)}" if parts else None


def _of_offsets(plan: GroupPlan, now: StoredGroup) -> str | None:
    offsets = now.committed()
    planned = {move.key: move.old_offset for move in plan.moves}
    keys: Iterable[TopicPartition] = planned
    if plan.action == DELETION:
        keys = sorted({*planned, *offsets})
    for key in keys:
        there = offsets[key].offset if key in offsets else None
        if there != planned.get(key):
            said = f"committed {_text(there)} now, not {_text(planned.get(key))} {SINCE}"
            return f"group {plan.group!r}, {key}: {said}"
    return None


def _identity(member: StoredMember) -> tuple[str, str]:
    return member.member_id, member.group_instance_id or ""


def _name(member: StoredMember) -> str:
    return member.group_instance_id or member.member_id


def _named(names: list[str]) -> str:
    shown = ", ".join(names[:3])
    return f"{_counted(len(names))} ({shown}{', ...' if len(names) > 3 else ''})"


def _counted(members: int) -> str:
    return "1 member" if members == 1 else f"{members} members"


def _text(offset: int | None) -> str:
    return "nothing" if offset is None else str(offset)
