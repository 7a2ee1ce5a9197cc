"""Compares the sources: fills a local broker and reads it in a Spark process. Does not import Spark."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kgctl.pipelines.bench.children import output_of, stopped_by_sigterm


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

    with stopped_by_sigterm(), LocalBroker() as broker:
        note(
            f"writing {records:,} records of about 100 bytes to a broker, then reading them {3 * (rounds + 1)} times with each source"
        )
        arguments = [broker.bootstrap_servers, str(records), str(rounds), ",".join(jars)]
        printed = output_of("kgctl.pipelines.bench.source_speed", *arguments)
    seconds_of: dict[tuple[str, str], list[float]] = {}
    for query, source, seconds in json.loads(printed):
        seconds_of.setdefault((query, source), []).append(seconds)
    return [_row(records, query, source, times) for (query, source), times in seconds_of.items()]


def _row(records: int, query: str, source: str, times: list[float]) -> SourceRow:
    warm = statistics.median(times[1:])
    return SourceRow(records, query, source, round(times[0], 2), round(warm, 2), round(records / warm))
