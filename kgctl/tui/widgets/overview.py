"""The first pane of a group: its rebalances, and of the one under the cursor all that is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Static

from kgctl.model.watched import Rebalance
from kgctl.tui.widgets.rows import Rows
from kgctl.tui.widgets.timeline import RebalanceDetail, Timeline


class OverviewPane(Vertical):
    """`show(...)` after each look. The details are below the timeline; a screen may lay them beside it."""

    DEFAULT_CSS = """
    OverviewPane { height: 1fr; }
    OverviewPane Timeline { scrollbar-gutter: stable; }
    OverviewPane #rebalances { layout: vertical; height: 1fr; }
    OverviewPane #past { height: 1fr; width: 1fr; }
    OverviewPane RebalanceDetail { height: 7; }
    OverviewPane #legend { height: 1; text-wrap: nowrap; text-overflow: ellipsis; padding: 0 2; color: $text-muted; }
    OverviewPane #story { height: auto; max-height: 3; padding: 0 2; color: $text-muted; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.timeline = Timeline(id="timeline")
        self.detail = RebalanceDetail()
        self._legend = Static("", id="legend", markup=False)
        self._story = Static("", id="story", markup=False)
        self._called: Mapping[str, str] = {}

    def compose(self) -> ComposeResult:
        with Horizontal(id="rebalances"):
            with Vertical(id="past"):
                yield self.timeline
                yield self._legend
            yield self.detail
        yield self._story

    def show(self, rebalances: Sequence[Rebalance], now_ms: int, called: Mapping[str, str], story: str) -> None:
        """Rebalances are oldest first; `called` has the names of members by id; `story` says where they are known from."""
        self._called = called
        self.timeline.empty = "No rebalance was seen yet." if story else "No rebalance yet."
        self.timeline.show_rebalances(rebalances, now_ms)
        legend = self.timeline.legend if rebalances else ""
        if self._legend.content != legend:
            self._legend.update(legend, layout=False)
        if self._story.content != story:
            self._story.update(story)
        self._tell()

    def focus(self, scroll_visible: bool = True) -> OverviewPane:
        self.timeline.focus(scroll_visible)
        return self

    def on_rows_moved(self, event: Rows.Moved) -> None:
        self._tell()

    def _tell(self) -> None:
        self.detail.show(self.timeline.cursor_row, self._called)
