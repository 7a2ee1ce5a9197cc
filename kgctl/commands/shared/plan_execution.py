"""What `kgctl apply`, `undo`, `groups restore` and `groups clone` have in common: check a plan, execute it, show it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kgctl.commands.shared.journaling import keeper
from kgctl.commands.shared.outcome import conclude, note_dry_run
from kgctl.journal.execution import Checked, execute, rows_of
from kgctl.journal.keeping import now_ms
from kgctl.journal.making import snapshot_of
from kgctl.model.changes import DONE, SKIPPED
from kgctl.model.failure import RowError
from kgctl.model.plans import ChangeRow, Plan, StoredGroup
from kgctl.render import note

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin
    from kgctl.client.net.errors import KgctlError
    from kgctl.commands.shared.settings import Settings

KIND = "plan-changes"


def execute_all(
    chosen: Settings,
    admin: Admin,
    plan: Plan,
    checked: Sequence[Checked],
    states: Mapping[str, StoredGroup | KgctlError],
    *,
    undoes: str | None = None,
    then: Callable[[list[ChangeRow]], list[ChangeRow]] = lambda rows: rows,
) -> list[ChangeRow]:
    """Execute the plan if no part of it is refused, with an entry in the journal; else only say what is refused.

    `then` does more with the rows of what was done, and returns its own rows, too.
    """
    from broker.light_dataclasses import replace

    if not all(one.is_good for one in checked):
        return [row if row.error else replace(row, status=SKIPPED) for row in rows_of(checked)]
    current = plan.with_groups(tuple(one.plan for one in checked))
    known = {name: found for name, found in states.items() if isinstance(found, StoredGroup)}
    before = snapshot_of(plan.cluster_id, now_ms(), (known[one.plan.group] for one in checked))
    return keeper(chosen).record(current, before, lambda: then(execute(admin, checked, plan.reason)), undoes=undoes)


def conclude_plan(
    chosen: Settings,
    rows: Sequence[ChangeRow],
    *,
    execute: bool,
    errors: Iterable[RowError] = (),
    all_or_nothing: bool = True,
) -> None:
    """Show the steps or their outcome, and exit with the code that fits."""
    others = list(errors)
    chosen.show(rows, kind=KIND, errors=others)
    note_dry_run(execute, [*others, *(row.error for row in rows)], all_or_nothing=all_or_nothing)
    failed = [*others, *(row.error for row in rows if row.error)]
    is_partial = any(row.status == DONE for row in rows)
    if not all_or_nothing and not execute:
        is_partial = any(row.error is None for row in rows)
    if execute and failed and not is_partial:
        note("Nothing was changed.")
    conclude(failed, len(failed) + is_partial)
