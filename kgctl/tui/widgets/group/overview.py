"""The first pane of a group: its rebalances, and details of the selected one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Static

from kgctl.model.watched import Rebalance
from kgctl.tui.widgets.group.rebalance_detail import RebalanceDetail
from kgctl.tui.widgets.group.timeline import Timeline
from kgctl.tui.widgets.table.rows import Rows


class OverviewPane(Vertical):
    """The details are below the timeline; a screen may place them beside it."""

    DEFAULT_CSS = """
    OverviewPane { height: 1fr; }
    OverviewPane Timeline { scrollbar-gutter: stable; }
    OverviewPane #rebalances { layout: vertical; height: 1fr; }
    OverviewPane #past { height: 1fr; width: 1fr; }
    OverviewPane RebalanceDetail { height: 7; }
    OverviewPane #legend { height: 1; text-wrap: nowrap; text-overflow: ellipsis; padding: 0 2; color: $text-muted; }
    OverviewPane #note { height: auto; max-height: 3; padding: 0 2; color: $text-muted; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.timeline = Timeline(id="timeline")
        self.detail = RebalanceDetail()
        self._legend = Static("", id="legend", markup=False)
        self._note = Static("", id="note", markup=False)
        self._names: Mapping[str, str] = {}

    def compose(self) -> ComposeResult:
        with Horizontal(id="rebalances"):
            with Vertical(id="past"):
                yield self.timeline
                yield self._legend
            yield self.detail
        yield self._note

    def show(self, rebalances: Sequence[Rebalance], now_ms: int, names: Mapping[str, str], note: str) -> None:
        """Show rebalances, oldest first. `names` are by member id; `note` says where the rebalances are known from."""
        self._names = names
        self.timeline.empty = "No rebalance observed yet." if note else "No rebalance yet."
        self.timeline.show_rebalances(rebalances, now_ms)
        legend = self.timeline.legend if rebalances else ""
        if self._legend.content != legend:
            self._legend.update(legend, layout=False)
        if self._note.content != note:
            self._note.update(note)
        self._show_detail()

    def focus(self, scroll_visible: bool = True) -> OverviewPane:
        self.timeline.focus(scroll_visible)
        return self

    def on_rows_moved(self, event: Rows.Moved) -> None:
        self._show_detail()

    def _show_detail(self) -> None:
        self.detail.show(self.timeline.cursor_row, self._names)
