"""The report: the tables of a run as HTML pages for people, an overview and a page per group. Needs pyarrow and Jinja2, not Spark."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from kgctl.pipelines.report.charts import lag_chart, rebalance_chart
from kgctl.pipelines.report.facts import read_facts, rows_after
from kgctl.pipelines.report.group_pages import write_pages
from kgctl.pipelines.report.listings import read_listings
from kgctl.pipelines.report.page import group_page, page, svg
from kgctl.pipelines.schemas import TABLES
from kgctl.pipelines.tables.formats import open_table
from kgctl.pipelines.tables.replacing import replace_file

TITLE = "Consumer groups"
PAGE, CHARTS = "report.html", "report"


@dataclass(frozen=True, slots=True)
class Report:
    """`charts` are the files with the charts of the overview; `written` counts the pages of groups that were written."""

    html: Path
    charts: tuple[Path, ...]
    written: int


def build(out_dir: Path, *, title: str | None = None, made_ms: int | None = None) -> Report:
    """Write OUT/report.html, OUT/report/*.svg and the pages of changed groups from the tables in OUT. Raises Damaged, Newer."""
    made_ms = time.time_ns() // 1_000_000 if made_ms is None else made_ms
    folders = {name: open_table(out_dir / name) for name in TABLES}
    with ExitStack() as files_stay:
        for folder in folders.values():
            files_stay.enter_context(folder.reading())
        facts = read_facts(out_dir)
        listings = read_listings(out_dir)

        def read(name: str, columns: Sequence[str], after_ms: int | None) -> Iterator[pa.Table]:
            return rows_after(folders[name], columns, after_ms)

        written = write_pages(out_dir, facts, read, lambda one: group_page(one, title or TITLE, made_ms))
    lag = lag_chart(facts.lag_map) if facts.lag_map else None
    rebalances = rebalance_chart(facts.rebalances) if facts.rebalances else None
    html = page(facts, listings, title or TITLE, made_ms, lag, rebalances)
    charts = []
    chart_dir = out_dir / CHARTS
    chart_dir.mkdir(parents=True, exist_ok=True)
    for path, chart in ((chart_dir / "lag.svg", lag), (chart_dir / "rebalances.svg", rebalances)):
        if chart is None:
            # The chart of an earlier report would be out of date.
            path.unlink(missing_ok=True)
            continue
        replace_file(path, svg(chart, standalone=True).encode())
        charts.append(path)
    replace_file(out_dir / PAGE, html.encode())
    return Report(out_dir / PAGE, tuple(charts), written)
