"""The report: the tables of a run as one HTML page and pictures, for people. Needs pyarrow and matplotlib, no Spark."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from kgctl.pipelines.report.drawing import as_png
from kgctl.pipelines.report.facts import read_facts
from kgctl.pipelines.report.figures import lag_picture, rebalance_picture
from kgctl.pipelines.report.page import page
from kgctl.pipelines.tables.replacing import replace_file

TITLE = "Consumer groups"
PAGE, PICTURES = "report.html", "report"


@dataclass(frozen=True, slots=True)
class Report:
    html: Path
    pngs: tuple[Path, ...]


def build(out_dir: Path, *, title: str | None = None, made_ms: int | None = None) -> Report:
    """OUT/report.html and OUT/report/*.png from the tables in OUT; `made_ms` is the time that it says. Raises Damaged."""
    facts = read_facts(out_dir)
    lag = lag_picture(facts.lag_map) if facts.lag_map else None
    rebalances = rebalance_picture(facts.rebalances) if facts.rebalances else None
    made_ms = time.time_ns() // 1_000_000 if made_ms is None else made_ms
    html = page(facts, title or TITLE, made_ms, lag, rebalances)
    pngs = []
    folder = out_dir / PICTURES
    folder.mkdir(parents=True, exist_ok=True)
    for name, picture in (("lag.png", lag), ("rebalances.png", rebalances)):
        if picture is None:
            # That of an earlier report would show what is not there.
            (folder / name).unlink(missing_ok=True)
            continue
        replace_file(folder / name, as_png(picture.draw, picture.height_in))
        pngs.append(folder / name)
    replace_file(out_dir / PAGE, html.encode())
    return Report(out_dir / PAGE, tuple(pngs))
