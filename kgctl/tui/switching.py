"""Switches the dashboard to another cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from textual.app import App

from kgctl.client.net.errors import KgctlError
from kgctl.tui import cells
from kgctl.tui.feed.connecting import Connect
from kgctl.tui.feed.protocol import Feed

ONE_CLUSTER = "A recording is about one cluster: end it to switch."


class Switch:
    """`show` shows the cluster of a feed. `connect` is None where the dashboard stays with its cluster.

    `has_switched`: another cluster was chosen. From then on, an error of a cluster does not end the dashboard: one can go back.
    """

    def __init__(self, app: App[None], show: Callable[[Feed], None], connect: Connect | None) -> None:
        self._app, self._show, self._connect = app, show, connect
        self._is_under_way = False
        self.has_switched = False

    def to(self, context: str | None) -> None:
        if self._connect is None:
            self._app.notify(ONE_CLUSTER, severity="warning", markup=False)
        elif not self._is_under_way:
            self._is_under_way = True
            self._app.run_worker(self._to(context, self._connect), exit_on_error=True)

    async def _to(self, context: str | None, connect: Connect) -> None:
        try:
            # It reads files, and may run a command for a secret.
            feed = await asyncio.to_thread(connect, context)
        except KgctlError as error:
            self._app.notify(cells.name(str(error)), severity="error", markup=False, timeout=15)
        else:
            self.has_switched = True
            self._show(feed)
        finally:
            self._is_under_way = False
