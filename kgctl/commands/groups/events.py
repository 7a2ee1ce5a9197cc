"""`kgctl events`: what happens to all groups, as it happens."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from kgctl.client.net.errors import KgctlError, Precondition
from kgctl.commands.groups.deriving import deriver
from kgctl.commands.groups.sampling import seconds_of
from kgctl.commands.groups.selection import Match
from kgctl.commands.shared.arguments import not_empty
from kgctl.commands.shared.effects import reads, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.interruption import Interrupted, Interruption
from kgctl.commands.shared.patterns import matching
from kgctl.commands.shared.settings import Settings, settings
from kgctl.model.events import EventRow, event_row
from kgctl.render import note

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin

_PAUSE_S = 0.5
EPILOG = examples(
    "kgctl events",
    "kgctl events -f orders payments",
    "kgctl events -f --match 'shop-.*' -o jsonl",
)


@shows("events")
@reads
def events(
    ctx: typer.Context,
    groups: Annotated[
        list[str] | None, typer.Argument(metavar="[GROUP...]", show_default=False, callback=not_empty)
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep on showing events as they come.")] = False,
    match: Match = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", min=0, help="Start with the newest N of those that are kept.")
    ] = 50,
    duration: Annotated[
        str | None,
        typer.Option(
            "--for", metavar="DURATION", help="With --follow: end after this time, such as 30s.", show_default=False
        ),
    ] = None,
) -> None:
    """Show the events of groups.

    Rebalances, members that join and leave, deletions; of all groups by default. kgctl's own broker keeps the events of
    a week, with causes. On other clusters, events are derived from what is stored in __consumer_offsets, if you may
    read it. The records of consumer and share groups also show when a rebalance began and why; not whether a member left or
    timed out.
    """
    chosen = settings(ctx)
    seconds = None if duration is None else seconds_of(duration, "--for")
    if seconds is not None and not follow:
        raise typer.BadParameter("needs --follow.", param_hint="'--for'")
    if follow and chosen.watch is not None:
        raise typer.BadParameter("--follow shows new events by itself.", param_hint="'--watch'")
    wanted = _wanted(groups, match)
    with chosen.admin() as admin, Interruption() as stop:
        read = _reader(admin, chosen)
        found = [row for row in read() if wanted(row.group)]
        chosen.show(found[-limit:] if limit else [], kind="events")
        if not follow:
            return
        try:
            _follow(chosen, read, wanted, stop, None if seconds is None else time.monotonic() + seconds)
        except Interrupted:
            return


def _follow(
    chosen: Settings,
    read: Callable[[], list[EventRow]],
    wanted: Callable[[str], bool],
    stop: Interruption,
    until_s: float | None,
) -> None:
    """Show new events until the time is over, or a signal arrives. A broker that is away for a while is asked again."""
    chosen.no_headers = True
    has_failed = False
    while until_s is None or time.monotonic() < until_s:
        sys.stdout.flush()
        with stop.may_interrupt():
            time.sleep(_PAUSE_S)
        try:
            found = [row for row in read() if wanted(row.group)]
            has_failed = False
        except KgctlError as error:
            if not error.retriable:
                raise
            if not has_failed:
                note(f"Warning: {error}; trying again.")
            has_failed = True
            continue
        if found:
            chosen.show(found, kind="events")


def _wanted(groups: list[str] | None, match: str | None) -> Callable[[str], bool]:
    names = frozenset(groups or ())
    return lambda group: (not names or group in names) and bool(matching([group], match))


def _reader(admin: Admin, chosen: Settings) -> Callable[[], list[EventRow]]:
    """A function that returns the events since its last call, oldest first; the first call those that are kept."""
    try:
        kept = admin.new_events(None, whole_history=True)
    except Precondition as error:
        chosen.explain(f"{error} Events are derived from what is stored in __consumer_offsets.")
        derived = deriver(admin, error)
        return lambda: [event_row(event) for event in derived()]
    first: list[EventRow] | None = [event_row(event) for event in kept]

    def read() -> list[EventRow]:
        nonlocal first
        if first is not None:
            found, first = first, None
            return found
        return [event_row(event) for event in admin.new_events(None, whole_history=False)]

    return read
