"""`kgctl pipeline bench`: measures on this machine when Spark pays off."""

from __future__ import annotations

import importlib.util
import re
from typing import Annotated

import typer

from kgctl.commands.shared.effects import local
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.settings import settings
from kgctl.pipelines.bench.compare import NEEDS, compare
from kgctl.pipelines.bench.sources import compare_sources
from kgctl.pipelines.runner import PipelinesMissing, check_installed
from kgctl.pipelines.spark.connector_jars import find_jars
from kgctl.render import note

_COUNT = re.compile(r"(\d+)([km]?)", re.IGNORECASE)
_UNITS = {"": 1, "k": 1000, "m": 1_000_000}
EPILOG = examples(
    "kgctl pipeline bench --records 1m,10m",
    "kgctl pipeline bench --engines spark,duckdb -o json",
    "kgctl pipeline bench --sources --records 1m",
)


@local
def bench(
    ctx: typer.Context,
    records: Annotated[
        str,
        typer.Option("--records", metavar="N[,...]", help="Number of records to generate, such as 100k, 1m or 10m."),
    ] = "1m",
    engines: Annotated[
        str,
        typer.Option(
            "--engines", metavar="NAME[,...]", help=f"Any of {', '.join(NEEDS)}. [default: all that are installed]"
        ),
    ] = "",
    sources: Annotated[bool, typer.Option("--sources", help="Measure the sources instead of the engines.")] = False,
    rounds: Annotated[
        int, typer.Option("--rounds", metavar="N", min=1, help="How often to measure; medians are shown.")
    ] = 2,
) -> None:
    """Compare Spark with DuckDB, Polars and plain Python.

    Each engine decodes and aggregates the same generated commit records in its own process. Engines take turns, and all
    must return the same result. Engines that are not installed are left out. With --sources, measure how fast a topic of a
    local broker is counted, summed up and written to Parquet through kgctl's source and, if its jars are installed, through Spark's
    own connector.
    """
    counts = [_count(text) for text in records.split(",")]
    if sources:
        check_installed()
        jars = find_jars()
        found = [
            row
            for count in counts
            for row in compare_sources(count, jars.paths if jars and jars.usable else (), rounds, note)
        ]
        settings(ctx).show(found, kind="pipeline-bench-sources")
        return
    rows = compare(counts, _engines(engines), rounds, note)
    settings(ctx).show(rows, kind="pipeline-bench")


def _count(text: str) -> int:
    found = _COUNT.fullmatch(text.strip())
    count = int(found[1]) * _UNITS[found[2].lower()] if found else 0
    if not 1 <= count <= 1_000_000_000:
        raise typer.BadParameter(f"{text!r} is not a number of records, such as 500k or 10m.", param_hint="'--records'")
    return count


def _engines(text: str) -> list[str]:
    installed = [
        name
        for name, module in NEEDS.items()
        if importlib.util.find_spec(module) and importlib.util.find_spec("pyarrow")
    ]
    if not installed:
        raise PipelinesMissing("the bench needs pyspark and pyarrow: pip install 'kgctl[pipelines]'")
    wanted = [name.strip().lower() for name in text.split(",") if name.strip()] or installed
    for name in wanted:
        if name not in NEEDS:
            raise typer.BadParameter(f"{name!r} is not one of {', '.join(NEEDS)}.", param_hint="'--engines'")
        if name not in installed:
            raise PipelinesMissing(f"engine {name} is not installed: pip install {NEEDS[name]}")
    return wanted
