"""What the journal keeps of resets: the plans that can be carried out, and what drained groups had committed in the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from broker.light_dataclasses import replace
from kgctl.client.admin.reset_targets import PENDING
from kgctl.journal.making import of_resets
from kgctl.model.changes import DONE, SKIPPED, ResetPlan, ResetRow
from kgctl.model.plans import StoredOffset

if TYPE_CHECKING:
    from kgctl.journal.journal import Begun


def effective(plans: Sequence[ResetPlan], drain: float | None, *, execute: bool) -> list[ResetPlan]:
    """The plans that may change something, with --drain also what open transactions and members delay."""
    found = []
    for plan in plans:
        if drain is not None:
            rows = tuple(
                replace(row, error=None) if row.error and row.error.name == PENDING else row for row in plan.rows
            )
            plan = replace(plan, rows=rows)
        is_refused = execute and plan.is_active and drain is None
        if plan.rows and not plan.failed and not is_refused:
            found.append(plan)
    return found


def journal_rows(plans: Sequence[ResetPlan]) -> list[Any]:
    """The rows with their results; the rows of a group that was refused as a whole have its error."""
    return [
        replace(row, status=SKIPPED, error=plan.error) if plan.error and not row.error and row.status != DONE else row
        for plan in plans
        for row in plan.rows
    ]


def keep_drained(plans: Sequence[ResetPlan], begun: Begun) -> None:
    """Members of a drained group may have committed after the first plan was made: keep the offsets that were replaced."""
    entry = begun.entry
    first = {group.group: group for group in entry.plan.groups}
    again = [
        plan
        for plan in plans
        if plan.group in first
        and any(row.status == DONE for row in plan.rows)
        and {(m.topic, m.partition, m.old_offset, m.new_offset) for m in first[plan.group].moves}
        != {(row.topic, row.partition, row.old_offset, row.new_offset) for row in plan.rows}
    ]
    if not again:
        return
    made = {
        group.group: replace(group, state=first[group.group].state, members=first[group.group].members)
        for group in of_resets([replace(plan, error=None, rows=_good(plan)) for plan in again])
    }
    rows = {plan.group: plan.rows for plan in again}
    before = tuple(
        replace(group, offsets=_offsets(group.offsets, rows[group.group])) if group.group in rows else group
        for group in entry.before.groups
    )
    groups = tuple(made.get(group.group, group) for group in entry.plan.groups)
    begun.correct(replace(entry, plan=replace(entry.plan, groups=groups), before=replace(entry.before, groups=before)))


def _good(plan: ResetPlan) -> tuple[ResetRow, ...]:
    return tuple(replace(row, error=None) for row in plan.rows)


def _offsets(kept: tuple[StoredOffset, ...], rows: Sequence[ResetRow]) -> tuple[StoredOffset, ...]:
    offsets = {one.key: one for one in kept}
    for row in rows:
        if row.partition is None:
            continue
        known = next((one for one in kept if (one.topic, one.partition) == (row.topic, row.partition)), None)
        if row.old_offset is None:
            offsets.pop(known.key, None) if known else None
        elif known is None or known.offset != row.old_offset:
            one = StoredOffset(row.topic, row.partition, row.old_offset)
            offsets[one.key] = one
    return tuple(offsets[key] for key in sorted(offsets))
