"""`kgctl groups history`: what happened to a group, when and why."""

from __future__ import annotations

from typing import Annotated

import typer

from kgctl.commands.arguments import Group
from kgctl.commands.settings import settings
from kgctl.model.history import GroupEventRow


def history(
    ctx: typer.Context,
    group: Group,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="Only the newest so many.")] = 50,
    every_event: Annotated[
        bool, typer.Option("--all", help="Also the beginnings of rebalances that have ended.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="More columns: who joined and who left.")] = False,
) -> None:
    """Show rebalances of a group with cause, duration, members and moved partitions; also of a deleted group.

    kgctl's own broker keeps a week of it, across restarts, in the topic __kgctl_group_events.
    """
    with settings(ctx).admin() as admin:
        rows = admin.group_history(group, every_event=every_event)
    settings(ctx).show(rows[-limit:], kind="group-history", row_type=GroupEventRow, verbose=verbose)
