"""`kgctl groups rebalance`: trigger a rebalance of a group."""

from __future__ import annotations

from typing import Annotated

import typer

from kgctl.commands.shared.arguments import Execute, Group
from kgctl.commands.shared.effects import changes, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.outcome import conclude, note_dry_run
from kgctl.commands.shared.settings import settings
from kgctl.model.changes import RebalanceRow
from kgctl.render import note

EPILOG = examples(
    "kgctl groups rebalance orders",
    "kgctl groups rebalance orders --execute --wait --reason 'new topics'",
    "kgctl groups rebalance orders --execute --evict --bootstrap kafka-1:9092",
)


@shows("group-rebalance")
@changes(names="group", when="execute")
def rebalance(
    ctx: typer.Context,
    group: Group,
    wait: Annotated[
        bool,
        typer.Option(
            "--wait", help="Wait until the group is Stable in a newer generation; exit code 3 after --timeout."
        ),
    ] = False,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="Recorded in the group's history. [default: none]")
    ] = "",
    evict: Annotated[
        bool, typer.Option("--evict", help="Allow eviction of all members on brokers that have no other way.")
    ] = False,
    execute: Execute = False,
) -> None:
    """Trigger a rebalance of a group.

    On kgctl's own broker members rejoin and keep their ids. Other brokers have no such request: there, --evict removes
    all members, and running consumers rejoin under new ids.
    """
    with settings(ctx).admin() as admin:
        rows = admin.plan_rebalance(group, evict=evict)
        if execute:
            rows = admin.rebalance(group, rows, reason, wait=wait)
    settings(ctx).show(rows, kind="group-rebalance")
    note_dry_run(execute, [row.error for row in rows])
    conclude((row.error for row in rows), len(rows))
    _note_duration(rows)


def _note_duration(rows: list[RebalanceRow]) -> None:
    first = next((row for row in rows if row.stable_after_ms is not None), None)
    if first is not None:
        generation = "" if first.generation_after is None else f" in generation {first.generation_after}"
        note(f"Group '{first.group}' was Stable{generation} after {first.stable_after_ms} ms.")
