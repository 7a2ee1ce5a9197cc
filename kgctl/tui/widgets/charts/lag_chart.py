"""Ten minutes of lag as an area, with figures at its left: the lag, how fast it grows, records in and out."""

from __future__ import annotations

from textual.content import Content

from kgctl.model.cluster_view import Totals
from kgctl.tui import cells
from kgctl.tui.widgets.charts.area import area, fitted
from kgctl.tui.widgets.text.line import Line
from kgctl.watch.series import Values
from kgctl.watch.trend import levels

FIGURES_WIDTH = 13


class LagChart(Line):
    DEFAULT_CSS = """
    LagChart { height: 1fr; padding: 0; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._lags: Values = ()
        self._totals = Totals()

    def show(self, lags: Values, totals: Totals) -> None:
        if (lags, totals) != (self._lags, self._totals):
            self._lags, self._totals = lags, totals
            self.refresh()

    def text(self, width: int) -> Content:
        totals, height = self._totals, max(1, self.content_size.height)
        if not self._lags:
            return Content()
        figures = [Content.styled(cells.short(totals.lag), "bold"), growth(totals.lag_per_s)]
        rates = [("in", totals.rate_in), ("out", totals.rate_out)]
        figures += [Content.assemble((f"{word:<4}", "$text-muted"), cells.rate(rate)) for word, rate in rates]
        if height < len(figures):
            figures = [figures[0] + " " + figures[1], *figures[2:]]
        lags = fitted(self._lags, max(0, width - FIGURES_WIDTH))
        chart = area(levels(lags, totals.rate_in), height)
        empty = Content(" " * FIGURES_WIDTH)
        lines = []
        for place, columns in enumerate(chart):
            figure = figures[place] if place < len(figures) else empty
            blank = " " * max(1, FIGURES_WIDTH - figure.cell_length)
            lines.append((figure + blank).truncate(FIGURES_WIDTH) + Content.styled(columns, "$primary"))
        return Content("\n").join(lines)


def growth(per_s: float | None) -> Content:
    """How fast a lag grows, with its sign."""
    if per_s is None:
        return Content()
    is_level = abs(per_s) < 0.5
    sign = "" if is_level else "+" if per_s > 0 else "-"
    text = f"{sign}{cells.rate(0.0 if is_level else abs(per_s))}"
    return Content.styled(text, "$text-warning" if per_s > 0 and not is_level else "$text-muted")
