"""What surrounds a measurement: signals, progress on the terminal, and its row, which is shown whatever ended it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import typer

from broker.light_dataclasses import dataclass
from kgctl.client.net.connector import ConnectionSettings
from kgctl.commands.bench.bench_topic import existing_topic
from kgctl.commands.bench.latencies import Percentiles
from kgctl.commands.bench.reading import Received
from kgctl.commands.bench.sending import Sent
from kgctl.commands.shared.interruption import Interrupted, Interruption
from kgctl.commands.shared.settings import Settings
from kgctl.model.bench import BenchMembers, BenchRecords
from kgctl.render import note
from kgctl.render.status_line import StatusLine

NO_PERCENTILES = (None, None, None, None)


@dataclass(slots=True)
class Run:
    """`row` is what was measured, once there is something."""

    interruption: Interruption
    line: StatusLine
    row: BenchRecords | BenchMembers | None = None

    def show(self, text: str) -> None:
        self.line.show(text)

    def note(self, sentence: str) -> None:
        self.line.clear()
        note(sentence)

    def partition_count(self, connection: ConnectionSettings, topic: str) -> int:
        return existing_topic(connection, topic).partitions


@contextlib.contextmanager
def measuring(chosen: Settings) -> Iterator[Run]:
    """Show the row at the end, also after a signal, which then decides the exit code."""
    with Interruption() as interruption:
        with StatusLine(sys.stderr) as line:
            run = Run(interruption, line)
            with contextlib.suppress(Interrupted):
                yield run
        if run.row is not None:
            chosen.show([run.row], kind="bench-members" if isinstance(run.row, BenchMembers) else "bench-records")
        if interruption.signal is not None:
            raise typer.Exit(128 + interruption.signal)


def records_row(
    topic: str, action: str, partitions: int, measured: Sent | Received, payload_bytes: int, **others: Any
) -> BenchRecords:
    """The row of records that were sent or received."""
    seconds, records = max(measured.seconds, 1e-6), measured.records
    p50, p95, p99, most = measured.latencies.percentiles() or NO_PERCENTILES
    return BenchRecords(
        topic=topic,
        action=action,
        partitions=partitions,
        records=records,
        seconds=round(measured.seconds, 3),
        records_s=round(records / seconds, 1),
        megabytes_s=round(payload_bytes / seconds / 1e6, 2),
        cpu_s_per_million=round(measured.cpu_s * 1e6 / records, 2) if records else None,
        p50_ms=p50,
        p95_ms=p95,
        p99_ms=p99,
        max_ms=most,
        **others,
    )


def in_seconds(found: Percentiles | None) -> tuple[float | None, ...]:
    return NO_PERCENTILES if found is None else tuple(round(ms / 1000, 3) for ms in found)
