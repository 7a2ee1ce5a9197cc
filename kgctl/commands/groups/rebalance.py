"""`kgctl groups rebalance`: trigger a rebalance of groups."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from kgctl.client.net.errors import NotFound, from_row
from kgctl.commands.groups.selection import AllGroups, Groups, Match, selected
from kgctl.commands.shared.arguments import Execute
from kgctl.commands.shared.effects import changes, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.journaling import carry_out, planned
from kgctl.commands.shared.outcome import conclude, note_dry_run
from kgctl.commands.shared.settings import Settings, settings
from kgctl.journal.making import of_rebalances
from kgctl.model.changes import EVICTION, RebalanceRow
from kgctl.model.groups import CLASSIC, CONSUMER
from kgctl.render import note
from kgctl.watch.figures import counted

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin

EPILOG = examples(
    "kgctl groups rebalance orders",
    "kgctl groups rebalance orders --execute --wait --reason 'new topics'",
    "kgctl groups rebalance --match 'etl-.*' --execute --wait --timeout 120",
    "kgctl groups rebalance orders --execute --evict --bootstrap kafka-1:9092",
    "kgctl groups rebalance orders --plan orders.json",
)


@shows("group-rebalance")
@changes(names="groups", when="execute")
@planned
def rebalance(
    ctx: typer.Context,
    groups: Groups = None,
    match: Match = None,
    all_groups: AllGroups = False,
    wait: Annotated[
        bool,
        typer.Option(
            "--wait", help="Wait until the groups are Stable in a newer generation; exit code 3 after --timeout."
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
    """Trigger a rebalance of groups.

    On kgctl's own broker members rejoin and keep their ids; in a consumer group (KIP-848), the assignor runs again, and
    members keep all partitions that it leaves to them. Other brokers have no such request: there, --evict removes all
    members of a classic group, and running consumers rejoin under new ids. With --wait, PARTITIONS and MOVED show how
    many partitions each member had, has, gained and lost.
    """
    selection = selected(ctx, groups, match, all_groups, types=(CLASSIC, CONSUMER))
    with settings(ctx).admin() as admin:
        plan = admin.plan_rebalances(selection.groups(admin), evict=evict, known_only=selection.is_listed)
        if selection.is_one and plan and plan[0].error:
            raise from_row(plan[0].error)
        if selection.is_listed and not plan:
            raise NotFound("None of these groups has members that this command can rebalance.")
        rows = carry_out(
            settings(ctx),
            admin,
            "rebalance",
            plan,
            [row.group for row in plan if not row.error],
            lambda states: of_rebalances(plan, states, evict=evict),
            lambda: _execute(settings(ctx), admin, plan, reason, wait=wait),
            execute=execute,
            reason=reason,
        )
        if execute and not wait and selection.is_one and rows and rows[0].error and all(row.error for row in rows):
            raise from_row(rows[0].error)
    settings(ctx).show(rows, kind="group-rebalance", errors=selection.errors)
    note_dry_run(execute, [row.error for row in rows])
    _note_durations(rows)
    conclude([*selection.errors, *(row.error for row in rows)], len(rows) + len(selection.errors))


def _execute(
    settings: Settings, admin: Admin, plan: Sequence[RebalanceRow], reason: str, *, wait: bool
) -> list[RebalanceRow]:
    since = time.monotonic()
    rows, is_sent = list(plan), False
    try:
        rows, is_sent = admin.request_rebalances(plan, reason), True
        return admin.await_rebalances(rows, since) if wait else rows
    except KeyboardInterrupt:
        if is_sent:
            settings.show(rows, kind="group-rebalance")
        _note_interruption(rows, is_sent)
        raise


def _note_interruption(rows: Sequence[RebalanceRow], is_sent: bool) -> None:
    """What was sent cannot be taken back: the groups rebalance without this command."""
    affected = list(dict.fromkeys(row.group for row in rows if not row.error))
    names = ", ".join(f"'{name}'" for name in affected[:10]) + (", ..." if len(affected) > 10 else "")
    what = "all members were evicted from" if rows and rows[0].method == EVICTION else "a rebalance was triggered in"
    certainty = what if is_sent else f"it is not known whether {what}"
    note(
        f"Interrupted: {certainty} {names}; a rebalance that has begun continues. "
        "See `kgctl groups describe GROUP --state`."
    )


def _note_durations(rows: Sequence[RebalanceRow]) -> None:
    for group in dict.fromkeys(row.group for row in rows if row.stable_after_ms is not None):
        some = [row for row in rows if row.group == group]
        first = next(row for row in some if row.stable_after_ms is not None)
        generation = "" if first.generation_after is None else f" in generation {first.generation_after}"
        gained = [row.gained for row in some if row.gained is not None]
        moved = f"; {counted(sum(gained), 'partition')} moved" if len(gained) == len(some) else ""
        note(f"Group '{group}' was Stable{generation} after {first.stable_after_ms} ms{moved}.")
