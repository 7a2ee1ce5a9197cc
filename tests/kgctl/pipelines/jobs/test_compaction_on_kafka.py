"""compaction and retention on a real Kafka that has compacted a part of the log: its files and its cleaner are the truth."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from broker.protocol.record_batch import Record, batches, build_batch, decode_records
from kgctl.pipelines.jobs.context import RunContext
from kgctl.pipelines.jobs.loop import run_jobs
from kgctl.pipelines.settings import RunSettings
from tests.harness.commandline import Kgctl, append
from tests.harness.reference_kafka import ReferenceKafka, Unavailable
from tests.harness.running import until
from tests.kgctl.pipelines.runs import rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.reference, pytest.mark.timeout(300)]

TOPIC = "accounts"
RECORD_BATCH_OVERHEAD = 61
DAY_MS = 86_400_000
CLEANER = {"log.cleaner.backoff.ms": "100", "log.retention.check.interval.ms": "600000"}


@dataclass
class Cleaned:
    """`first_dirty` is the offset that Kafka's cleaner notes for the log; `folder` holds its segments."""

    row: dict[str, Any]
    retention: dict[str, Any]
    folder: Path
    first_dirty: int


@pytest.fixture(scope="module")
def cleaned(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cleaned]:
    try:
        started = ReferenceKafka(CLEANER)
    except Unavailable as reason:
        pytest.skip(f"no real Kafka: {reason}")
    with started as kafka:
        kgctl, folder = Kgctl(kafka.bootstrap_servers), kafka.data_dir / "log"
        configs = ("cleanup.policy=compact", "min.cleanable.dirty.ratio=0.01", f"segment.ms={DAY_MS}")
        options = [word for config in configs for word in ("--config", config)]
        assert kgctl("topics", "create", TOPIC, "--partitions", 1, *options).exit_code == 0
        now_ms = time.time_ns() // 1_000_000
        with kgctl.admin() as admin:

            def write(age_days: float, first: int, count: int, keys: int, *, tombstones: bool = False) -> None:
                at_ms = now_ms - round(age_days * DAY_MS)
                for number in range(first, first + count, 10):
                    some = range(number, min(number + 10, first + count))
                    values = [None if tombstones else b"v" * (n % 90) for n in some]
                    records = [
                        Record(place, at_ms, b"key-%d" % (n % keys), value)
                        for place, (n, value) in enumerate(zip(some, values, strict=True))
                    ]
                    append(admin, TOPIC, 0, build_batch(records))

            # A segment ends when a record is a day newer than its first: three segments that the cleaner takes.
            write(9, 0, 500, 100)
            write(7, 0, 500, 150)
            write(6, 140, 10, 1000, tombstones=True)
            write(5, 0, 500, 120)
            write(3, 0, 1, 1)
            end = 1510
            until(lambda: first_dirty(folder) == end, 60)
            # From here on, nothing is compacted.
            frozen = kgctl("configs", "set", "topic", TOPIC, "min.cleanable.dirty.ratio=1.0", "--execute")
            assert frozen.exit_code == 0, frozen.output
            write(3, 1, 300, 130)
            write(1, 0, 200, 110)
        out = tmp_path_factory.mktemp("facts")
        settings = RunSettings(("retention", "compaction"), str(kgctl.bootstrap), str(out), topics=TOPIC)
        run_jobs(RunContext(spark, settings, frozenset(), "cluster", lambda _: None, threading.Event()))
        (row,), (retention,) = rows(out, "f_compaction"), rows(out, "f_retention")
        yield Cleaned(row, retention, folder / f"{TOPIC}-0", first_dirty(folder) or 0)


def test_the_first_dirty_offset_is_the_one_that_the_cleaner_notes(cleaned: Cleaned) -> None:
    # The first dirty record repeats a key of the cleaned part.
    assert cleaned.row["dirty_from"] == cleaned.first_dirty == 1510
    assert cleaned.row["removed"] > 500


def test_the_dirty_ratio_is_kafkas_with_the_active_segment(cleaned: Cleaned) -> None:
    sizes = segments(cleaned.folder)
    clean = sum(size for base, size in sizes.items() if base < cleaned.first_dirty)
    total = sum(sizes.values())
    assert cleaned.row["bytes"] == total
    assert cleaned.row["dirty_ratio"] == pytest.approx((total - clean) / total, abs=0.01)


def test_records_and_bytes_are_those_of_the_segments(cleaned: Cleaned) -> None:
    row, found = cleaned.row, stored(cleaned.folder)
    counts = Counter(key for key, *_ in found)
    last = {key: place for place, (key, *_) in enumerate(found)}
    superseded = [size for place, (key, _, size, _) in enumerate(found) if last[key] != place]
    assert (row["records"], row["keys"], row["max_records_per_key"]) == (
        len(found),
        len(counts),
        max(counts.values()),
    )
    assert row["superseded"] == len(superseded)
    # The job takes lengths and deltas of a record for one byte each.
    assert row["superseded_bytes"] == pytest.approx(sum(superseded), rel=0.01)
    tombstones = [horizon for _, value, _, horizon in found if value is None]
    # The cleaner gave their batches a horizon a day after it saw them: none is due, however old they are.
    assert row["tombstones"] == len(tombstones) > 0
    assert all(horizon is not None for horizon in tombstones)
    assert row["tombstones_due"] == 0


def test_sizes_and_ages_are_those_of_the_log(cleaned: Cleaned) -> None:
    row = cleaned.retention
    assert (row["cleanup_policy"], row["log_start"], row["log_end"]) == ("compact", 0, 2011)
    assert (row["retention_ms"], row["expired_records"]) == (None, None)
    assert row["bytes"] == sum(segments(cleaned.folder).values())
    assert (row["at"] - row["oldest"]).total_seconds() > 5 * 86_400


def first_dirty(folder: Path) -> int | None:
    """From the cleaner's checkpoint: version, number of lines, and a line for each partition."""
    path = folder / "cleaner-offset-checkpoint"
    for line in path.read_text().splitlines()[2:] if path.exists() else ():
        topic, partition, offset = line.split()
        if (topic, partition) == (TOPIC, "0"):
            return int(offset)
    return None


def segments(folder: Path) -> dict[int, int]:
    return {int(path.stem): path.stat().st_size for path in folder.glob("*.log")}


def stored(folder: Path) -> list[tuple[bytes | None, bytes | None, float, int | None]]:
    """Key, value, share of the batch by the size of the encoded record, and delete horizon, in the order of the log."""
    found = []
    for path in sorted(folder.glob("*.log")):
        content = path.read_bytes()
        for position, header in batches(content):
            records = decode_records(content, position)
            alone = [build_batch([Record(0, 0, one.key, one.value)]) for one in records]
            sizes = [len(one) - RECORD_BATCH_OVERHEAD for one in alone]
            found += [
                (one.key, one.value, header.size_bytes * size / sum(sizes), header.delete_horizon_ms)
                for one, size in zip(records, sizes, strict=True)
            ]
    return found
