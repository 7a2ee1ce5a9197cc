"""Asks each engine in a process of its own, in turns, and keeps the medians. Knows nothing of Spark."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kgctl.client.net.errors import KgctlError

NEEDS = {"spark": "pyspark", "duckdb": "duckdb", "polars": "polars", "python": "pyarrow"}
PYTHON = [sys.executable, "-P", "-m"]


class BenchFailed(KgctlError):
    """An engine gave no answer, or another one than the others."""


@dataclass(frozen=True, slots=True)
class EngineRow:
    """Times in seconds: `first_s` with the engine's start, `warm_s` asked once more; CPU of all processes for both.

    `largest_rss_mb` is that of the largest process.
    """

    records: int
    engine: str
    first_s: float
    warm_s: float
    warm_records_per_s: int
    cpu_s: float
    largest_rss_mb: int


def compare(counts: Sequence[int], engines: Sequence[str], rounds: int, tell: Callable[[str], None]) -> list[EngineRow]:
    """A row per number of records and engine; all must give the same answer."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="kgctl-bench-") as folder:
        for count in counts:
            path = Path(folder) / f"{count}.parquet"
            tell(f"making {count:,} records")
            _run("kgctl.pipelines.bench.records", str(path), str(count))
            rows += _rows(count, path, engines, rounds, tell)
            path.unlink()
    return rows


def _rows(count: int, path: Path, engines: Sequence[str], rounds: int, tell: Callable[[str], None]) -> list[EngineRow]:
    told: dict[str, list[dict[str, float]]] = {engine: [] for engine in engines}
    answers: dict[str, object] = {}
    for number in range(rounds):
        for engine in engines:
            tell(f"{count:,} records, round {number + 1} of {rounds}: {engine}")
            result = json.loads(_run("kgctl.pipelines.bench.engines", engine, str(path)))
            answers[engine] = result.pop("found")
            told[engine].append(result)
    if len({str(answer) for answer in answers.values()}) > 1:
        raise BenchFailed(f"the engines do not agree: {answers}")
    return [_row(count, engine, results) for engine, results in told.items()]


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


def _run(module: str, *words: str) -> str:
    done = subprocess.run([*PYTHON, module, *words], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise BenchFailed(f"{module} {' '.join(words)}: {said[-1] if said else f'code {done.returncode}'}")
    return done.stdout.decode()
