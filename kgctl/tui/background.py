"""Watches all groups while the app runs, whatever screen is open."""

from __future__ import annotations

from collections.abc import Callable

from kgctl.client.net.errors import KgctlError
from kgctl.tui.observer import Observer
from kgctl.tui.polling import Polling
from kgctl.watch.cluster import ClusterView


class Background:
    """Polls all groups from the start to the end of the app. `answered` and `failed` are called after each attempt."""

    def __init__(
        self,
        observer: Observer,
        answered: Callable[[ClusterView], None],
        failed: Callable[[KgctlError], None],
        interval_s: Callable[[], float],
        clock: Callable[[], float],
    ) -> None:
        self.observer = observer
        self.polling = Polling(observer.cluster, answered, failed, interval_s, clock)

    @property
    def view(self) -> ClusterView | None:
        """The newest view; None until a snapshot succeeds."""
        return self.polling.last
