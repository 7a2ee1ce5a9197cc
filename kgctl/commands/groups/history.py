"""`kgctl groups history`: the rebalances of a group, with their causes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kgctl.client.net.errors import NotFound, Precondition
from kgctl.commands.shared.arguments import Group
from kgctl.commands.shared.effects import reads, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.settings import settings
from kgctl.model.groups import REBALANCING, SHARE
from kgctl.model.history import STARTED, GroupEventRow, by_rebalance
from kgctl.watch.restarts import with_restart

if TYPE_CHECKING:
    from collections.abc import Callable

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
    groups. On other clusters, events are derived from what is stored in __consumer_offsets, if you may read it. The records
    of consumer and share groups show when a rebalance began and why, but not whether a member left or timed out; those of
    classic groups only what a rebalance led to. After compaction, older rebalances are missing.
    """
    with settings(ctx).admin() as admin:
        events, is_last_over = _events(admin, group, settings(ctx).explain)
        (described,) = admin.describe_groups([group], offsets=False)
    rows = events if every_event else by_rebalance(events, is_last_over=is_last_over)
    if not every_event and described.broker_started_ms is not None:
        rows = with_restart(rows, described.broker_started_ms)
    settings(ctx).show(rows[-limit:], kind="group-history", verbose=verbose)


def _events(admin: Admin, group: str, explain: Callable[[str], None]) -> tuple[list[GroupEventRow], bool]:
    """All events of the group, and whether the last one is the start of a rebalance that is over without an end event."""
    try:
        events = admin.group_history(group)
    except Precondition as error:
        explain(f"{error} Events are derived from what is stored in __consumer_offsets.")
        return _derived(admin, group, error), False
    if events[-1].event != STARTED:
        return events, False
    (described,) = admin.describe_groups([group], offsets=False)
    is_unknown = described.error is not None and described.error.name != NotFound.name
    # The state of a share group does not show its rebalances.
    if is_unknown or described.state in REBALANCING or described.type == SHARE:
        return events, False
    # Its end event may have been written between the two answers.
    again = admin.group_history(group)
    return again, again[-1] == events[-1]


def _derived(admin: Admin, group: str, missing: Precondition) -> list[GroupEventRow]:
    from kgctl.commands.groups.deriving import deriver, topic_names
    from kgctl.watch.derived_events import with_names

    events = deriver(admin, missing, group)()
    if not events:
        raise NotFound(f"__consumer_offsets has no events of group '{group}'.")
    names = topic_names(admin)
    return [with_names(event, names) for event in events]
