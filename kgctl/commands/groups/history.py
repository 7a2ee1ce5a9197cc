"""`kgctl groups history`: the rebalances of a group, with their causes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kgctl.client.net.errors import NotFound
from kgctl.commands.shared.arguments import Group
from kgctl.commands.shared.effects import reads, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.settings import settings
from kgctl.model.groups import REBALANCING
from kgctl.model.history import STARTED, GroupEventRow, by_rebalance
from kgctl.watch.restarts import with_restart

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin

EPILOG = examples(
    "kgctl groups history orders",
    "kgctl groups history orders --limit 5 --verbose",
    "kgctl groups history orders --all -o json",
)


@shows("group-history")
@reads
def history(
    ctx: typer.Context,
    group: Group,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="Show only the newest N.")] = 50,
    every_event: Annotated[
        bool, typer.Option("--all", help="Show every event, also the start of each rebalance that has ended.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Add columns: the members that joined and left.")] = False,
) -> None:
    """Show the rebalances of a group and their causes.

    A row has the time, the cause, the duration, and how many members joined and left. EVENT says how a rebalance ended:
    stable, empty, superseded (by the next rebalance, before it led to an assignment) or interrupted (by a restart of the
    broker); rebalance_started is one under way.

    kgctl's own broker keeps the events of a week in the topic __kgctl_group_events, across restarts and also of deleted
    groups.
    """
    with settings(ctx).admin() as admin:
        events, is_last_over = _events(admin, group)
        (described,) = admin.describe_groups([group], offsets=False)
    rows = events if every_event else by_rebalance(events, is_last_over=is_last_over)
    if not every_event and described.broker_started_ms is not None:
        rows = with_restart(rows, described.broker_started_ms)
    settings(ctx).show(rows[-limit:], kind="group-history", verbose=verbose)


def _events(admin: Admin, group: str) -> tuple[list[GroupEventRow], bool]:
    """All events of the group, and whether the last one is the start of a rebalance that is over without an end event."""
    events = admin.group_history(group)
    if events[-1].event != STARTED:
        return events, False
    (described,) = admin.describe_groups([group], offsets=False)
    is_unknown = described.error is not None and described.error.name != NotFound.name
    if is_unknown or described.state in REBALANCING:
        return events, False
    # Its end event may have been written between the two answers.
    again = admin.group_history(group)
    return again, again[-1] == events[-1]
