"""What screens use of the app. They do not import the app itself, which imports them."""

from __future__ import annotations

from typing import Protocol

from kgctl.tui.background import Background
from kgctl.tui.cluster_label import ClusterLabel
from kgctl.tui.feed.protocol import Feed
from kgctl.watch.baseline import Baseline
from kgctl.watch.cluster import ClusterView


class Dashboard(Protocol):
    """`interval_s` is the refresh interval; `read_only` disables everything that changes a group.
    `read_only_reason`: why that holds for every cluster, as a sentence.

    `home` is the cluster at the start.
    """

    feed: Feed
    background: Background
    interval_s: float
    read_only: bool
    read_only_reason: str
    is_paused: bool
    home: ClusterLabel

    @property
    def baseline(self) -> Baseline | None:
        """The moment that tables compare with, if the user has set one."""
        ...

    def now_s(self) -> float:
        """Monotonic seconds, of the clock by which ages are computed."""
        ...

    @property
    def replay(self) -> str | None:
        """Where a recording stands, for the header; None if the dashboard shows a cluster."""
        ...

    @property
    def replay_details(self) -> str: ...

    def open_group(self, group: str, at_ms: int | None = None) -> None:
        """Open the screen of a group; at the rebalance of this time in ms since 1970, if one is given."""
        ...

    @property
    def has_switched(self) -> bool:
        """Whether another cluster was chosen since the start."""
        ...

    def switch_to(self, context: str | None) -> None:
        """Show the cluster of a context, or the one of the command line, with None; everything about the old one is dropped."""
        ...

    def open_records(self, topic: str, partition: int, group: str | None = None) -> None:
        """Show the records around the committed offset of the group, or without one the newest records."""
        ...

    @property
    def cluster(self) -> ClusterView | None:
        """The newest view of all groups; None until the background has one."""
        ...

    def groups_in_order(self) -> list[str]:
        """All groups in the order in which their table shows them; those that it hides are left out."""
        ...

    def fail(self, error: Exception) -> None:
        """End with this error, which the command reports."""
        ...

    def set_ready(self) -> None:
        """Report that a screen has its first answer, or the error that replaces it."""
        ...
