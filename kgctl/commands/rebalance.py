"""`kgctl groups rebalance`: a new generation without a change of members, and who is in it."""

from __future__ import annotations

from typing import Annotated

import typer

from kgctl.commands.arguments import Execute, Group
from kgctl.commands.outcome import conclude, note_dry_run
from kgctl.commands.settings import settings
from kgctl.model.changes import RebalanceRow
from kgctl.render import note


def rebalance(
    ctx: typer.Context,
    group: Group,
    wait: Annotated[
        bool,
        typer.Option("--wait", help="Until the group is Stable in a newer generation; exit code 3 after --timeout."),
    ] = False,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Kept in the group's history.")] = "",
    evict: Annotated[
        bool, typer.Option("--evict", help="Consent to eviction where the broker knows no better: all members leave.")
    ] = False,
    execute: Execute = False,
) -> None:
    """Let the members of a group join again, and share the partitions anew.

    kgctl's own broker tells the members to, and they keep their ids. Other brokers cannot; there --evict makes all members leave,
    and those that run join again under new ids.
    """
    with settings(ctx).admin() as admin:
        rows = admin.plan_rebalance(group, evict=evict)
        if execute:
            rows = admin.rebalance(group, rows, reason, wait=wait)
    settings(ctx).show(rows, kind="group-rebalance", row_type=RebalanceRow)
    note_dry_run(execute, [row.error for row in rows])
    conclude((row.error for row in rows), len(rows))
    _say_how_long(rows)


def _say_how_long(rows: list[RebalanceRow]) -> None:
    first = next((row for row in rows if row.stable_after_ms is not None), None)
    if first is not None:
        generation = "" if first.generation_after is None else f" in generation {first.generation_after}"
        note(f"Group '{first.group}' was Stable{generation} after {first.stable_after_ms} ms.")
