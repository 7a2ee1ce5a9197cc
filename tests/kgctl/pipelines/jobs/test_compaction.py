"""compaction on a broker: what is written equals what the log holds, counted without Spark."""

from __future__ import annotations

import random
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from broker.local import LocalBroker
from broker.protocol.compression import Codec
from broker.protocol.record_batch import Record, build_batch
from kgctl.client.admin.lag_facts import log_bytes
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.jobs.context import RunContext
from kgctl.pipelines.jobs.loop import run_jobs
from kgctl.pipelines.settings import RunSettings
from tests.harness.commandline import Kgctl, append
from tests.kgctl.pipelines.runs import rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY_MS = 86_400_000
TOMBSTONES_MS = 2 * DAY_MS
PARTITIONS = 2


@dataclass
class Written:
    """The records of one partition as they were written: key, size in the log, time, whether it is a tombstone."""

    records: list[tuple[bytes | None, float, int, bool]] = field(default_factory=list)
    size: int = 0

    def batch(self, keys: list[bytes | None], value: bytes | None, at_ms: int, codec: Codec = Codec.NONE) -> bytes:
        """A batch whose records are all of one size, so that each takes the same share of it."""
        made = build_batch([Record(n, at_ms, key, value) for n, key in enumerate(keys)], codec=codec)
        self.records += [(key, len(made) / len(keys), at_ms, value is None) for key in keys]
        self.size += len(made)
        return made


@dataclass
class Cluster:
    kgctl: Kgctl
    accounts: list[Written]
    switched: Written


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Logs that nothing compacts: `accounts`; `switched`, with records without keys; `moves`, with transactions."""
    randomness = random.Random(7)
    now_ms = time.time_ns() // 1_000_000
    with LocalBroker() as broker:
        kgctl = Kgctl(broker.bootstrap_servers)
        compact = ("--config", "cleanup.policy=compact", "--config", f"delete.retention.ms={TOMBSTONES_MS}")
        ratio = ("--config", "min.cleanable.dirty.ratio=0.25")
        assert kgctl("topics", "create", "accounts", "--partitions", PARTITIONS, *compact, *ratio).exit_code == 0
        assert kgctl("topics", "create", "moves", "--partitions", 1, *compact).exit_code == 0
        assert kgctl("topics", "create", "empty", "--partitions", 1, *compact).exit_code == 0
        assert kgctl("topics", "create", "switched", "--partitions", 1).exit_code == 0
        assert kgctl("topics", "create", "deleted", "--partitions", 1).exit_code == 0
        accounts, switched = [Written() for _ in range(PARTITIONS)], Written()
        with kgctl.admin() as admin:
            for part, written in enumerate(accounts):
                gone = written.batch([b"gone-1", b"gone-2"], None, now_ms - 5 * DAY_MS)
                append(admin, "accounts", part, gone)
                for number in range(60):
                    keys: list[bytes | None] = [
                        b"account-%02d-%d" % (int(randomness.paretovariate(0.6)) % 40, part)
                        for _ in range(randomness.randrange(1, 30))
                    ]
                    value = None if randomness.random() < 0.2 else randomness.randbytes(randomness.randrange(200))
                    codec = randomness.choice([Codec.NONE, Codec.GZIP, Codec.ZSTD])
                    at_ms = now_ms - 4 * DAY_MS + number * DAY_MS // 20
                    append(admin, "accounts", part, written.batch(keys, value, at_ms, codec))
            append(admin, "switched", 0, switched.batch([None] * 3 + [b""], b"v", now_ms))
            append(admin, "deleted", 0, build_batch([Record(0, now_ms, b"k", b"v")]))
        assert kgctl("configs", "set", "topic", "switched", "cleanup.policy=compact", "--execute").exit_code == 0
        # A producer that is collected would abort its transaction.
        producer = write_transactions(broker.bootstrap_servers)
        for offset in range(3):
            kgctl.commit("readers", "accounts", p1=offset)
        yield Cluster(kgctl, accounts, switched)
        # It would try to connect to the stopped broker for as long as it lives.
        del producer


def write_transactions(bootstrap: str) -> Producer:
    """Five committed records, seven aborted ones, two committed ones, and the first of an open transaction. Returns the
    producer that holds it open."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "mover"})
    producer.init_transactions(20)
    for count, end in (
        (5, producer.commit_transaction),
        (7, producer.abort_transaction),
        (2, producer.commit_transaction),
    ):
        producer.begin_transaction()
        for number in range(count):
            producer.produce("moves", b"v", str(number % 4), partition=0)
        producer.flush(20)
        end(20)
    producer.begin_transaction()
    producer.produce("moves", b"open", b"0", partition=0)
    producer.flush(20)
    return producer


@pytest.fixture(scope="module")
def out(spark: SparkSession, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("facts")
    settings = RunSettings(
        ("compaction",),
        str(cluster.kgctl.bootstrap),
        str(folder),
        topics="[a-z].*|__(consumer_offsets|transaction_state)",
    )
    run_jobs(RunContext(spark, settings, frozenset(), "cluster", lambda _: None, threading.Event()))
    return folder


def expected(written: Written, now_ms: int) -> dict[str, Any]:
    places: dict[bytes, list[int]] = defaultdict(list)
    for offset, (key, *_) in enumerate(written.records):
        if key is not None:
            places[key].append(offset)
    last = {offsets[-1] for offsets in places.values()}
    size = [record[1] for record in written.records]
    superseded = [offset for offsets in places.values() for offset in offsets[:-1]]
    tombstones = [offset for offset, record in enumerate(written.records) if record[3]]
    due = [offset for offset in tombstones if offset in last and written.records[offset][2] + TOMBSTONES_MS <= now_ms]
    no_key = [offset for offset, record in enumerate(written.records) if record[0] is None]
    dirty_from = min((offsets[1] for offsets in places.values() if len(offsets) > 1), default=None)
    return {
        "records": len(written.records),
        "bytes": written.size,
        "keys": len(places),
        "records_per_key": (len(written.records) - len(no_key)) / len(places),
        "max_records_per_key": max(len(offsets) for offsets in places.values()),
        "no_key": len(no_key),
        "superseded": len(superseded),
        "superseded_bytes": round(sum(size[offset] for offset in superseded)),
        "tombstones": len(tombstones),
        "tombstones_due": len(due),
        "tombstones_due_bytes": round(sum(size[offset] for offset in due)),
        "free_bytes": round(sum(size[offset] for offset in {*superseded, *due, *no_key})),
        "dirty_from": dirty_from,
        "removed": 0,
    }


@pytest.mark.parametrize("part", range(PARTITIONS))
def test_what_a_partition_holds(cluster: Cluster, out: Path, part: int) -> None:
    row = measured(out)["accounts", part]
    written = cluster.accounts[part]
    wanted = expected(written, round(row["at"].timestamp() * 1000))
    assert wanted["tombstones_due"]
    assert wanted["superseded"] > 100
    assert {name: row[name] for name in wanted} == wanted
    assert (row["delete_retention_ms"], row["dirty_ratio_limit"]) == (TOMBSTONES_MS, 0.25)
    assert row["segment_bytes"] == 1 << 30
    oldest = min(at_ms for _, _, at_ms, is_tombstone in written.records if is_tombstone)
    assert row["oldest_tombstone"].timestamp() * 1000 == oldest
    assert row["oldest_dirty"].timestamp() * 1000 == written.records[wanted["dirty_from"]][2]


@pytest.mark.parametrize("part", range(PARTITIONS))
def test_sizes_are_those_that_the_broker_reports(cluster: Cluster, out: Path, part: int) -> None:
    place = TopicPartition("accounts", part)
    with cluster.kgctl.admin() as admin:
        assert measured(out)[place]["bytes"] == admin.run(log_bytes(admin.cluster, [place]))[place]


@pytest.mark.parametrize("part", range(PARTITIONS))
def test_the_dirty_ratio_is_the_share_from_the_first_repeated_key_on(cluster: Cluster, out: Path, part: int) -> None:
    row, written = measured(out)["accounts", part], cluster.accounts[part]
    dirty = sum(size for _, size, *_ in written.records[row["dirty_from"] :])
    # Only within the 16 KiB around the first dirty record, bytes count in proportion to offsets.
    assert row["dirty_ratio"] == pytest.approx(dirty / written.size, abs=0.02)


def test_the_worst_keys_are_those_of_the_whole_topic(cluster: Cluster, out: Path) -> None:
    found = [row for row in rows(out, "compaction_keys") if row["topic"] == "accounts"]
    sizes: dict[tuple[bytes | None, int], list[float]] = defaultdict(list)
    for part, written in enumerate(cluster.accounts):
        for key, size, *_ in written.records:
            sizes[key, part].append(size)
    ranking = sorted(
        ((round(sum(each[:-1])), len(each), -part, key, round(sum(each))) for (key, part), each in sizes.items()),
        reverse=True,
    )
    assert [
        (row["superseded_bytes"], row["records"], -row["part"], row["key"], row["bytes"])
        for row in sorted(found, key=lambda row: row["rank"])
    ] == ranking[:10]
    assert all(row["text"] == row["key"].decode() for row in found)


def test_keys_of_internal_topics_are_readable(out: Path) -> None:
    found = {row["topic"]: row for row in rows(out, "compaction_keys") if row["rank"] == 1}
    assert (found["__consumer_offsets"]["text"], found["__consumer_offsets"]["records"]) == ("readers accounts-1", 3)
    assert found["__transaction_state"]["text"] == "mover"


def test_records_without_keys_can_be_freed(cluster: Cluster, out: Path) -> None:
    row = measured(out)["switched", 0]
    wanted = expected(cluster.switched, 0)
    assert (wanted["no_key"], wanted["free_bytes"]) == (3, round(cluster.switched.size * 3 / 4))
    assert {name: row[name] for name in wanted} == wanted
    assert row["dirty_ratio"] == 0


def test_transactions_count_as_compaction_sees_them(out: Path) -> None:
    row = measured(out)["moves", 0]
    # Markers take an offset each; the open transaction is beyond the last stable offset.
    assert (row["log_start"], row["read_until"]) == (0, 5 + 1 + 7 + 1 + 2 + 1)
    assert (row["records"], row["keys"], row["superseded"], row["aborted"], row["removed"]) == (7, 4, 3, 7, 0)
    assert row["aborted_bytes"] > 0
    assert row["free_bytes"] == pytest.approx(row["aborted_bytes"] + row["superseded_bytes"], abs=1)


def test_an_empty_log_is_measured_and_other_topics_are_not(out: Path) -> None:
    found = measured(out)
    internal = {"__consumer_offsets", "__transaction_state"}
    assert {topic for topic, _ in found} == {"accounts", "moves", "switched", "empty", *internal}
    empty = found["empty", 0]
    assert (empty["records"], empty["bytes"], empty["keys"], empty["free_bytes"]) == (0, 0, 0, 0)
    assert (empty["records_per_key"], empty["dirty_ratio"], empty["dirty_from"]) == (None, None, None)


def measured(out: Path) -> dict[tuple[str, int], dict[str, Any]]:
    return {(row["topic"], row["part"]): row for row in rows(out, "f_compaction")}
