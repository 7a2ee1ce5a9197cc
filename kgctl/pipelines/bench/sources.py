"""From a broker to a DataFrame, by each source: a broker of its own is filled and read in a process of its own. Knows no Spark."""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kgctl.pipelines.bench.compare import PYTHON, BenchFailed


@dataclass(frozen=True, slots=True)
class SourceRow:
    """Seconds of a read of the whole topic: the first, with all that has to start, and the median of the later ones."""

    records: int
    source: str
    first_s: float
    warm_s: float
    warm_records_per_s: int


def compare_sources(records: int, jars: Sequence[str], rounds: int, tell: Callable[[str], None]) -> list[SourceRow]:
    """A row per source; without jars there is only kgctl's own."""
    from broker.local import LocalBroker

    with LocalBroker() as broker:
        tell(
            f"writing {records:,} records of about 100 bytes to a broker, then reading them {rounds + 1} times by each source"
        )
        words = [broker.bootstrap_servers, str(records), str(rounds), ",".join(jars)]
        done = subprocess.run(
            [*PYTHON, "kgctl.pipelines.bench.source_speed", *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise BenchFailed(f"the sources could not be measured: {said[-1] if said else f'code {done.returncode}'}")
    told: dict[str, list[float]] = {}
    for source, seconds in json.loads(done.stdout):
        told.setdefault(source, []).append(seconds)
    return [_row(records, source, times) for source, times in told.items()]


def _row(records: int, source: str, times: list[float]) -> SourceRow:
    warm = statistics.median(times[1:])
    return SourceRow(records, source, round(times[0], 2), round(warm, 2), round(records / warm))
