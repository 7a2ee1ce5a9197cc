"""The plans of `kgctl groups reset-offsets`, and their execution group by group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from broker.light_dataclasses import replace
from kgctl.client.admin.reset_input import no_plan
from kgctl.client.admin.reset_targets import PENDING, Scope, Target
from kgctl.client.net.cluster import chunks
from kgctl.client.net.errors import KgctlError, from_row
from kgctl.commands.groups.selection import Selection
from kgctl.commands.shared.times import parse_duration
from kgctl.model.changes import DONE, SKIPPED, ResetPlan
from kgctl.render import note

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin

GROUPS_AT_ONCE = 100
DRAIN_S = 60.0
Drain = Annotated[
    str | None,
    typer.Option(
        "--drain",
        metavar="[TIMEOUT]",
        help="With --execute, evict all members of a group, again if they rejoin, until its offsets are committed; wait "
        "for open transactions, too. [default timeout: 1m]",
    ),
]


def drain_seconds(given: str | None) -> float | None:
    """None without the option; an empty value is the default."""
    if given is None or not given:
        return None if given is None else DRAIN_S
    return parse_duration(f"{given}s" if given.isdecimal() else given, "--drain") / 1000


def make_plans(
    admin: Admin, selection: Selection, scope: Scope, targets: Target | Mapping[str, Target], *, create: bool
) -> tuple[list[ResetPlan], list[str]]:
    """The plans, and the listed groups that have nothing in the scope. Raises the error of the only group."""
    names = selection.groups(admin)
    found = names if isinstance(targets, Target) else [name for name in names if name in targets]
    plans = admin.plan_resets(found, scope, targets, create=create, known_only=selection.is_listed)
    if selection.is_one and plans and plans[0].error:
        raise from_row(plans[0].error)
    left_out = [plan.group for plan in plans if not (plan.rows or plan.error)]
    absent = [name for name in names if name not in found]
    if selection.is_listed:
        left_out += absent
    else:
        errors = {name: no_plan(name, "the file", others=True).as_row() for name in absent}
        plans += [ResetPlan(name, None, (), error=errors[name]) for name in absent]
    return [plan for plan in plans if plan.rows or plan.error], left_out


def execute_plans(
    admin: Admin,
    plans: Sequence[ResetPlan],
    scope: Scope,
    targets: Target | Mapping[str, Target],
    drain: float | None,
    *,
    known_only: bool,
) -> list[ResetPlan]:
    """The plans with their outcome. `drain`: the seconds for each group whose members may be evicted, or None.

    `known_only`: as for the plans.
    """
    done: dict[str, ResetPlan] = {}
    needs_draining = [plan for plan in plans if drain is not None and _needs_draining(plan)]
    try:
        for some in chunks([plan for plan in plans if plan not in needs_draining], GROUPS_AT_ONCE):
            done |= {plan.group: plan for plan in _applied(admin, some)}
        for plan in needs_draining:
            assert drain is not None
            target = targets if isinstance(targets, Target) else targets[plan.group]
            try:
                done[plan.group] = admin.drain_and_reset(
                    plan, scope, target, seconds=drain, known_only=known_only, note=note
                )
            except KgctlError as error:
                done[plan.group] = _failed(plan, error)
    except KeyboardInterrupt:
        _note_interruption(done.values(), len(plans))
        raise
    return [_with_times(done[plan.group], plan) for plan in plans]


def _needs_draining(plan: ResetPlan) -> bool:
    return plan.error is None and (plan.is_active or any(row.error and row.error.name == PENDING for row in plan.rows))


def _applied(admin: Admin, plans: Sequence[ResetPlan]) -> list[ResetPlan]:
    try:
        return admin.apply_resets(plans)
    except KgctlError as error:
        return [_failed(plan, error) for plan in plans]


def _failed(plan: ResetPlan, error: KgctlError) -> ResetPlan:
    rows = tuple(row if row.error else replace(row, status=SKIPPED) for row in plan.rows)
    return replace(plan, rows=rows, error=plan.error or error.as_row())


def _with_times(done: ResetPlan, plan: ResetPlan) -> ResetPlan:
    """Times of records that the first plan has; a plan that was made again has other offsets."""
    known = {(row.topic, row.partition): row for row in plan.rows}
    rows = []
    for row in done.rows:
        old = known.get((row.topic, row.partition))
        if old is not None and (old.old_offset, old.new_offset) == (row.old_offset, row.new_offset):
            row = replace(row, old_timestamp=old.old_timestamp, new_timestamp=old.new_timestamp)
        rows.append(row)
    return replace(done, rows=tuple(rows))


def _note_interruption(done: Iterable[ResetPlan], total: int) -> None:
    finished = [plan.group for plan in done if any(row.status == DONE for row in plan.rows)]
    names = f": {', '.join(finished[:10])}{', ...' if len(finished) > 10 else ''}" if finished else ""
    note(
        f"Interrupted: the offsets of {len(finished)} of {total} groups were changed{names}. The change of the next ones "
        "may have been sent already; evicted members rejoin if they run. See `kgctl groups describe`."
    )
