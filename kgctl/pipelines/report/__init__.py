"""The report: the tables of a run as one HTML page for people. Needs pyarrow and Jinja2, not Spark."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from kgctl.pipelines.report.charts import lag_chart, rebalance_chart
from kgctl.pipelines.report.facts import read_facts
from kgctl.pipelines.report.page import page, svg
from kgctl.pipelines.tables.replacing import replace_file

TITLE = "Consumer groups"
PAGE, CHARTS = "report.html", "report"


@dataclass(frozen=True, slots=True)
class Report:
    """`charts` are the files with the charts of the page."""

    html: Path
    charts: tuple[Path, ...]


def build(out_dir: Path, *, title: str | None = None, made_ms: int | None = None) -> Report:
    """Write OUT/report.html and OUT/report/*.svg from the tables in OUT. Raises Damaged."""
    facts = read_facts(out_dir)
    lag = lag_chart(facts.lag_map) if facts.lag_map else None
    rebalances = rebalance_chart(facts.rebalances) if facts.rebalances else None
    made_ms = time.time_ns() // 1_000_000 if made_ms is None else made_ms
    html = page(facts, title or TITLE, made_ms, lag, rebalances)
    charts = []
    folder = out_dir / CHARTS
    folder.mkdir(parents=True, exist_ok=True)
    for path, chart in ((folder / "lag.svg", lag), (folder / "rebalances.svg", rebalances)):
        if chart is None:
            # The chart of an earlier report would be out of date.
            path.unlink(missing_ok=True)
            continue
        replace_file(path, svg(chart, standalone=True).encode())
        charts.append(path)
    replace_file(out_dir / PAGE, html.encode())
    return Report(out_dir / PAGE, tuple(charts))
