"""Compares the sources: fills a local broker and reads it in a Spark process. Does not import Spark."""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kgctl.pipelines.bench.compare import PYTHON, BenchFailed


@dataclass(frozen=True, slots=True)
class SourceRow:
    """Seconds to count the whole topic, sum it up or write it to Parquet: the first read, which starts everything, and the median of the later ones."""

    records: int
    query: str
    source: str
    first_s: float
    warm_s: float
    warm_records_per_s: int


def compare_sources(records: int, jars: Sequence[str], rounds: int, note: Callable[[str], None]) -> list[SourceRow]:
    """One row per source; without jars only kgctl's. Raises BenchFailed."""
    from broker.local import LocalBroker

    with LocalBroker() as broker:
        note(
            f"writing {records:,} records of about 100 bytes to a broker, then reading them {3 * (rounds + 1)} times with each source"
        )
        arguments = [broker.bootstrap_servers, str(records), str(rounds), ",".join(jars)]
        done = subprocess.run(
            [*PYTHON, "kgctl.pipelines.bench.source_speed", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise BenchFailed(f"cannot measure the sources: {lines[-1] if lines else f'exit code {done.returncode}'}")
    seconds_of: dict[tuple[str, str], list[float]] = {}
    for query, source, seconds in json.loads(done.stdout):
        seconds_of.setdefault((query, source), []).append(seconds)
    return [_row(records, query, source, times) for (query, source), times in seconds_of.items()]


def _row(records: int, query: str, source: str, times: list[float]) -> SourceRow:
    warm = statistics.median(times[1:])
    return SourceRow(records, query, source, round(times[0], 2), round(warm, 2), round(records / warm))
