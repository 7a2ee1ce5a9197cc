"""Runs the engines in turn, each in its own process, and computes medians. Does not import Spark."""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kgctl.pipelines.bench.children import BenchFailed, output_of, stopped_by_sigterm

NEEDS = {"spark": "pyspark", "duckdb": "duckdb", "polars": "polars", "python": "pyarrow"}


@dataclass(frozen=True, slots=True)
class EngineRow:
    """`first_s` includes the start of the engine, `warm_s` is a second run; `cpu_s` is the CPU time of both runs.

    `largest_rss_mb` is the resident memory of the largest process.
    """

    records: int
    engine: str
    first_s: float
    warm_s: float
    warm_records_per_s: int
    cpu_s: float
    largest_rss_mb: int


def compare(counts: Sequence[int], engines: Sequence[str], rounds: int, note: Callable[[str], None]) -> list[EngineRow]:
    """One row per number of records and engine. Raises BenchFailed, also if the results differ."""
    rows = []
    with stopped_by_sigterm(), tempfile.TemporaryDirectory(prefix="kgctl-bench-") as folder:
        for count in counts:
            path = Path(folder) / f"{count}.parquet"
            note(f"generating {count:,} records")
            output_of("kgctl.pipelines.bench.records", str(path), str(count))
            rows += _rows(count, path, engines, rounds, note)
            path.unlink()
    return rows


def _rows(count: int, path: Path, engines: Sequence[str], rounds: int, note: Callable[[str], None]) -> list[EngineRow]:
    measured: dict[str, list[dict[str, float]]] = {engine: [] for engine in engines}
    answers: dict[str, object] = {}
    for number in range(rounds):
        for engine in engines:
            note(f"{count:,} records, round {number + 1} of {rounds}: {engine}")
            result = json.loads(output_of("kgctl.pipelines.bench.engines", engine, str(path)))
            answers[engine] = result.pop("found")
            measured[engine].append(result)
    if len({str(answer) for answer in answers.values()}) > 1:
        raise BenchFailed(f"the results of the engines differ: {answers}")
    return [_row(count, engine, results) for engine, results in measured.items()]


def _row(count: int, engine: str, results: list[dict[str, float]]) -> EngineRow:
    def median(name: str) -> float:
        return statistics.median(result[name] for result in results)

    return EngineRow(
        records=count,
        engine=engine,
        first_s=round(median("first_s"), 2),
        warm_s=round(median("warm_s"), 2),
        warm_records_per_s=round(count / median("warm_s")),
        cpu_s=round(median("cpu_s"), 1),
        largest_rss_mb=round(median("largest_rss_kib") / 1024),
    )
