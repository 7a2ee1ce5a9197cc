"""transactions and producers: the tables say what the producers of a test did, on kgctl's broker and on a real Kafka."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from broker.protocol.record_batch import Record, build_batch
from kgctl.pipelines.jobs.context import RunContext
from kgctl.pipelines.jobs.loop import run_jobs
from kgctl.pipelines.progress import Progress
from kgctl.pipelines.schemas.sources import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kgctl.pipelines.settings import RunSettings
from tests.harness import clusters
from tests.harness.commandline import Kgctl, append
from tests.harness.reference_kafka import ReferenceKafka, Unavailable
from tests.harness.running import until
from tests.kgctl.pipelines.runs import rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(300)

JOBS = ("transactions", "producers")
COMMIT, ABORT = "committed", "aborted"


@dataclass
class Done:
    """What a producer did: outcome, partitions, and between which times, in seconds since 1970."""

    transactional_id: str
    outcome: str
    partitions: list[tuple[str, tuple[int, ...]]]
    began: float
    ended: float


@dataclass
class World:
    kgctl: Kgctl
    out: Path
    done: list[Done]
    hanging_id: int | None


@pytest.fixture(scope="module", params=["kgctl", pytest.param("kafka", marks=pytest.mark.reference)])
def world(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """Two runs. Between them, `steady` ends the transaction that was open, and one of `slow` reaches its timeout."""
    try:
        started = start(request.param)
    except Unavailable as reason:
        pytest.skip(f"no real Kafka: {reason}")
    with started as cluster:
        kgctl = Kgctl(cluster.bootstrap_servers)
        assert kgctl("topics", "create", "orders", "--partitions", 3).exit_code == 0
        assert kgctl("topics", "create", "stuck", "--partitions", 1).exit_code == 0
        out = tmp_path_factory.mktemp("facts")
        done: list[Done] = []
        steady = transactional(kgctl, "steady")
        for number in range(6):
            outcome = ABORT if number % 3 == 2 else COMMIT
            done.append(transact(steady, "steady", outcome, list(range(number % 3 + 1))))
        slow = transactional(kgctl, "slow", timeout_ms=1000)
        spanning = begin(steady, [1])
        run_jobs(run_of(spark, kgctl, out))
        steady.commit_transaction(30)
        done.append(Done("steady", COMMIT, [("orders", (1,))], spanning, time.time()))
        began = begin(slow, [0, 2])
        until(lambda: kgctl.rows("transactions", "describe", "slow")[0]["state"] == "CompleteAbort", 30)
        done.append(Done("slow", ABORT, [("orders", (0, 2))], began, time.time()))
        begin(steady, [2])
        # kgctl's broker refuses records of transactions that no coordinator knows.
        hanging_id = hang(kgctl, "stuck") if request.param == "kafka" else None
        run_jobs(run_of(spark, kgctl, out))
        yield World(kgctl, out, done, hanging_id)
        steady.purge()
        slow.purge()


def test_every_transaction_that_ended_is_there_once(world: World) -> None:
    found = Counter(
        (row["transactional_id"], row["outcome"], places(row["partitions"])) for row in rows(world.out, "f_transaction")
    )
    assert found == Counter((one.transactional_id, one.outcome, tuple(one.partitions)) for one in world.done)
    assert all(
        row["partition_count"] == sum(len(one["parts"]) for one in row["partitions"])
        for row in rows(world.out, "f_transaction")
    )


def test_times_lie_between_what_the_producer_saw(world: World) -> None:
    found = sorted(rows(world.out, "f_transaction"), key=lambda row: row["started"])
    for row, one in zip(found, sorted(world.done, key=lambda one: one.began), strict=True):
        # Kafka's times are in milliseconds.
        assert one.began - 0.001 <= row["started"].timestamp() <= row["decided"].timestamp()
        assert row["decided"] <= row["ended"]
        assert row["decided"].timestamp() <= one.ended
        assert row["duration_ms"] == round((row["ended"] - row["started"]).total_seconds() * 1000)
        assert row["markers_ms"] == round((row["ended"] - row["decided"]).total_seconds() * 1000)


def test_only_the_slow_one_timed_out(world: World) -> None:
    found = [row for row in rows(world.out, "f_transaction") if row["timed_out"]]
    assert [(row["transactional_id"], row["outcome"], row["timeout_ms"]) for row in found] == [("slow", ABORT, 1000)]


def test_each_id_has_its_share_of_aborted_transactions_and_its_state(world: World) -> None:
    found = {row["transactional_id"]: row for row in measured(world, "f_producer")}
    assert found.keys() == {"steady", "slow"}
    steady, slow = found["steady"], found["slow"]
    assert (steady["transactions"], steady["committed"], steady["aborted"], steady["aborted_share"]) == (7, 5, 2, 2 / 7)
    assert (slow["transactions"], slow["aborted_share"], slow["timed_out"]) == (1, 1.0, 1)
    durations = sorted(
        row["duration_ms"] for row in rows(world.out, "f_transaction") if row["transactional_id"] == "steady"
    )
    assert steady["mean_ms"] == pytest.approx(sum(durations) / 7)
    assert (steady["p95_ms"], steady["max_ms"]) == (durations[-1], durations[-1])
    assert (steady["state"], slow["state"], slow["open_since"]) == ("Ongoing", "CompleteAbort", None)
    assert places(steady["open_partitions"]) == (("orders", (2,)),)
    (described,) = world.kgctl.rows("transactions", "describe", "steady")
    assert steady["open_since"].timestamp() * 1000 == described["started_ms"]
    assert (steady["producer_id"], steady["producer_epoch"]) == (described["producer_id"], described["producer_epoch"])


def test_who_holds_back_readers(world: World) -> None:
    found = {(row["topic"], row["part"]): row for row in measured(world, "f_hold") if not row["topic"].startswith("__")}
    known = found.pop(("orders", 2))
    assert (known["transactional_id"], known["waiting"], known["hanging"]) == ("steady", 1, False)
    assert known["held_ms"] >= 0
    if world.hanging_id is None:
        assert not found
        return
    ((place, unknown),) = found.items()
    assert place == ("stuck", 0)
    assert (unknown["transactional_id"], unknown["producer_id"], unknown["hanging"]) == (None, world.hanging_id, True)
    assert (unknown["last_stable"], unknown["log_end"], unknown["waiting"]) == (0, 2, 2)


def test_a_cluster_without_transactions_is_no_failure(world: World, spark: SparkSession, tmp_path: Path) -> None:
    notes: list[Progress] = []
    run = run_of(spark, world.kgctl, tmp_path, topics=frozenset({OFFSETS_TOPIC}), emit=notes.append)
    run_jobs(run)
    assert any(note.text == "the cluster has no topic __transaction_state yet: nothing to read" for note in notes)
    assert {row["transactions"] for row in rows(tmp_path, "f_producer")} == {0}


def start(kind: str) -> contextlib.AbstractContextManager[clusters.Cluster]:
    if kind != "kafka":
        return clusters.start(kind)
    unverified = {"transaction.partition.verification.enable": "false"}
    return ReferenceKafka({**clusters.CONFIG, **clusters.KAFKA_ONLY, **unverified})


def transactional(kgctl: Kgctl, name: str, timeout_ms: int = 60_000) -> Producer:
    producer = Producer(
        {"bootstrap.servers": kgctl.bootstrap, "transactional.id": name, "transaction.timeout.ms": timeout_ms}
    )
    producer.init_transactions(30)
    return producer


def begin(producer: Producer, parts: list[int]) -> float:
    began = time.time()
    producer.begin_transaction()
    for part in parts:
        producer.produce("orders", b"x", partition=part)
    assert producer.flush(30) == 0
    return began


def transact(producer: Producer, name: str, outcome: str, parts: list[int]) -> Done:
    began = begin(producer, parts)
    if outcome == COMMIT:
        producer.commit_transaction(30)
    else:
        producer.abort_transaction(30)
    return Done(name, outcome, [("orders", tuple(parts))], began, time.time())


def hang(kgctl: Kgctl, topic: str) -> int:
    """Two records of a transaction that no coordinator knows; returns the id of its producer."""
    with kgctl.admin() as admin:
        producer_id = 9_000_000
        records = [Record(n, int(time.time() * 1000), b"k", b"v") for n in range(2)]
        batch = build_batch(records, producer_id=producer_id, producer_epoch=0, base_sequence=0, is_transactional=True)
        append(admin, topic, 0, batch, transactional_id="nobody-knows")
        return producer_id


def places(partitions: list[dict[str, Any]]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return tuple((one["topic"], tuple(one["parts"])) for one in partitions)


def measured(world: World, table: str) -> list[dict[str, Any]]:
    found = rows(world.out, table)
    newest = max(row["at"] for row in found)
    return [row for row in found if row["at"] == newest]


def run_of(
    spark: SparkSession,
    kgctl: Kgctl,
    out: Path,
    topics: frozenset[str] = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC}),
    emit: Callable[[Progress], None] = lambda _: None,
) -> RunContext:
    settings = RunSettings(JOBS, str(kgctl.bootstrap), str(out))
    return RunContext(spark, settings, topics, "cluster", emit, threading.Event())
