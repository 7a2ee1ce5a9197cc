"""`kgctl ui`: the dashboard."""

from __future__ import annotations

from typing import Annotated

import typer

from kgctl.commands.settings import settings


def ui(
    ctx: typer.Context,
    group: Annotated[str | None, typer.Argument(metavar="[GROUP]", show_default=False)] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Switch off everything that changes a group.")] = False,
    interval: Annotated[float, typer.Option("--interval", metavar="SECONDS", min=0.1, help="How often to look.")] = 2.0,
) -> None:
    """Watch groups live on a dashboard, and act on them."""
    from kgctl.tui.app import KgctlApp
    from kgctl.tui.feed import ClusterFeed

    chosen = settings(ctx)
    feed = ClusterFeed(chosen.endpoints(), chosen.timeout)
    try:
        KgctlApp(feed, interval_s=interval, read_only=read_only, group=group).run()
    finally:
        feed.close()
