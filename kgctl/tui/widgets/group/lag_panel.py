"""The panel of the lag of a group over ten minutes."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.content import Content

from kgctl.model.cluster_view import Totals
from kgctl.model.watched import WatchedGroup
from kgctl.tui import cells
from kgctl.tui.widgets.charts.lag_chart import LagChart, growth
from kgctl.tui.widgets.frame.looks import verdict
from kgctl.tui.widgets.frame.panel import Panel
from kgctl.watch.series import Values


class GroupLagPanel(Panel):
    def __init__(self) -> None:
        super().__init__("Lag, 10 min", number=5, id="lag", least=(28, 4))
        self.chart = LagChart()

    def compose(self) -> ComposeResult:
        yield self.chart

    def show(self, row: WatchedGroup, lags: Values) -> None:
        self.chart.show(lags, totals_of(row))


def totals_of(row: WatchedGroup) -> Totals:
    is_known = row.lag is not None and row.rate_in is not None and row.rate_out is not None
    grows = (row.rate_in or 0.0) - (row.rate_out or 0.0) if is_known else None
    return Totals(row.lag, grows, row.rate_in, row.rate_out)


def headline(row: WatchedGroup) -> list[Content]:
    """The verdict, the lag, how fast it grows, and how far the group is behind."""
    totals, found = totals_of(row), [verdict(row.health)]
    if row.lag is None:
        # A group without commits may have read as far as the log end.
        uncommitted = [Content.styled(f"\u2264{row.uncommitted_records:,}", "bold")] if row.uncommitted_records else []
        return [*found, *uncommitted]
    found.append(Content.styled(cells.count(row.lag), "bold"))
    if totals.lag_per_s is not None and abs(totals.lag_per_s) >= 0.5:
        found.append(growth(totals.lag_per_s))
    if row.behind_s:
        found.append(Content(f"{cells.duration(row.behind_s)} behind"))
    return found
