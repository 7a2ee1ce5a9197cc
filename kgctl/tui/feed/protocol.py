"""What screens use of a feed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from kgctl.client.admin.admin import Admin
from kgctl.tui.cluster_label import ClusterLabel
from kgctl.tui.feed.read import Read

T = TypeVar("T")


class Feed(Protocol):
    """Coroutines that do not block the event loop, return values to it, and raise a KgctlError on failure."""

    @property
    def cluster(self) -> ClusterLabel:
        """What people call the cluster, and what its context forbids."""
        ...

    async def read(self, read: Read[T]) -> T:
        """The answer now; in a recording, the newest answer at the moment that is shown."""
        ...

    async def ask(self, question: Callable[[Admin], T]) -> T:
        """Plans and changes. They do not wait for a read that takes long, and are never recorded.

        The question runs in another thread: it may use the Admin and its own values, and must not touch a screen.
        """
        ...

    def close(self) -> None: ...
