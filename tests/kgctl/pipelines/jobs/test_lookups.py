"""The lookup of log ends in a task, without Spark."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from broker.local import LocalBroker
from kgctl.client.net.errors import TimedOut, Unreachable
from kgctl.contexts.connecting import connection_at
from kgctl.pipelines.jobs.asking_again import Patience
from kgctl.pipelines.jobs.lookups import FirstBehind, LogEndLookup
from tests.harness.commandline import Kgctl, fill
from tests.harness.mock_cluster import MockCluster, mock_cluster

HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def kgctl() -> Iterator[Kgctl]:
    with LocalBroker() as broker:
        yield Kgctl(broker.bootstrap_servers)


def test_records_written_between_now_and_the_request_do_not_count(kgctl: Kgctl) -> None:
    now_ms = time.time_ns() // 1_000_000
    assert kgctl("topics", "create", "late").exit_code == 0
    fill(kgctl, "late", [10], now_ms - 60_000)
    fill(kgctl, "late", [7], now_ms)
    assert ends(kgctl, now_ms, [("late", 0, now_ms)]) == {("late", 0, now_ms): (0, 10, "sampled")}


def test_a_record_with_a_future_timestamp_does_not_hide_later_records(kgctl: Kgctl) -> None:
    now_ms = time.time_ns() // 1_000_000
    assert kgctl("topics", "create", "early").exit_code == 0
    fill(kgctl, "early", [1], now_ms + HOUR_MS // 2)
    fill(kgctl, "early", [9], now_ms - 60_000)
    assert ends(kgctl, now_ms, [("early", 0, now_ms)]) == {("early", 0, now_ms): (0, 10, "sampled")}


def test_past_points_are_looked_up_per_partition(kgctl: Kgctl) -> None:
    now_ms = time.time_ns() // 1_000_000
    assert kgctl("topics", "create", "past", "--partitions", 2).exit_code == 0
    fill(kgctl, "past", [5, 3], now_ms - HOUR_MS)
    then = now_ms - HOUR_MS + 2
    asked = [("past", 0, then), ("past", 1, then + 99), ("past", 1, then), ("gone", 0, then)]
    assert ends(kgctl, now_ms, asked) == {
        ("past", 0, then): (None, 2, "by_timestamp"),
        ("past", 1, then): (None, 2, "by_timestamp"),
        ("past", 1, then + 99): (None, 3, "by_timestamp"),
    }


def test_points_of_many_partitions_share_requests(kgctl: Kgctl) -> None:
    now_ms = time.time_ns() // 1_000_000
    assert kgctl("topics", "create", "wide", "--partitions", 20).exit_code == 0
    asked = [("wide", part, now_ms - 1000 * part - point) for part in range(20) for point in range(3)]
    assert len(list(answers(kgctl, now_ms, asked))) == 3
    assert ends(kgctl, now_ms, asked).keys() == set(asked)


def test_a_record_with_a_time_in_nanoseconds_has_no_known_time(kgctl: Kgctl) -> None:
    now_ms = time.time_ns() // 1_000_000
    any_time = f"message.timestamp.after.max.ms={2**63 - 1}"
    assert kgctl("topics", "create", "odd", "--partitions", 2, "--config", any_time).exit_code == 0
    fill(kgctl, "odd", [1], now_ms * 10**6)
    fill(kgctl, "odd", [0, 1], now_ms)
    asked = pa.RecordBatch.from_pylist([{"topic": "odd", "part": part, "offset": 0} for part in range(2)])
    (found,) = FirstBehind(connection_at(str(kgctl.bootstrap), timeout=20.0))([asked])
    assert [(row["part"], round(row["behind_ts"].timestamp() * 1000)) for row in found.to_pylist()] == [(1, now_ms)]


def ends(
    kgctl: Kgctl, now_ms: int, asked: list[tuple[str, int, int]]
) -> dict[tuple[str, int, int], tuple[int | None, int, str]]:
    """(topic, part, at_ms): (log_start, log_end, source)."""
    return {
        (row["topic"], row["part"], round(row["at"].timestamp() * 1000)): (
            row["log_start"],
            row["log_end"],
            row["source"],
        )
        for batch in answers(kgctl, now_ms, asked)
        for row in batch.to_pylist()
    }


def answers(kgctl: Kgctl, now_ms: int, asked: list[tuple[str, int, int]]) -> Iterator[pa.RecordBatch]:
    rows = [{"topic": topic, "part": part, "at_ms": at} for topic, part, at in asked]
    return LogEndLookup(connection_at(str(kgctl.bootstrap), timeout=20.0), now_ms)([pa.RecordBatch.from_pylist(rows)])


# ---- where brokers and leaders are away --------------------------------------------------------------------------------

SHORT = Patience(0.2, 0.2)
NO_BROKER = -1
FETCH = 1
UNKNOWN_TOPIC, FORBIDDEN, CORRUPT = 3, 29, 2


@pytest.fixture
def mocked() -> Iterator[MockCluster]:
    """Topic t: a record in each of three partitions, which brokers 1 to 3 lead."""
    with mock_cluster(brokers=3) as cluster:
        cluster.create("t", 3)
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
        for part in range(3):
            cluster.lead("t", part, part + 1)
            producer.produce("t", b"v", partition=part, timestamp=1000 + part)
        assert producer.flush(30) == 0
        yield cluster


def written(cluster: MockCluster, patience: Patience, timeout: float = 20.0) -> dict[int, int]:
    asked = pa.RecordBatch.from_pylist([{"topic": "t", "part": part, "offset": 0} for part in range(3)])
    (found,) = FirstBehind(connection_at(cluster.bootstrap_servers, timeout=timeout), patience)([asked])
    return {row["part"]: round(row["behind_ts"].timestamp() * 1000) for row in found.to_pylist()}


def current(cluster: MockCluster, patience: Patience, timeout: float = 20.0) -> dict[int, int]:
    now_ms = time.time_ns() // 1_000_000
    asked = pa.RecordBatch.from_pylist([{"topic": "t", "part": part, "at_ms": now_ms} for part in range(3)])
    lookup = LogEndLookup(connection_at(cluster.bootstrap_servers, timeout=timeout), now_ms, patience)
    return {row["part"]: row["log_end"] for batch in lookup([asked]) for row in batch.to_pylist()}


def test_a_partition_without_a_leader_is_left_out(mocked: MockCluster) -> None:
    mocked.lead("t", 1, NO_BROKER)
    assert current(mocked, SHORT) == {0: 1, 2: 1}


@pytest.mark.parametrize("code", [UNKNOWN_TOPIC, FORBIDDEN, CORRUPT])
def test_a_partition_that_cannot_be_read_costs_no_other_its_answer(mocked: MockCluster, code: int) -> None:
    for part in (0, 2):
        mocked.fail_partition("t", part, FETCH, *[code] * 20)
    assert written(mocked, SHORT) == {1: 1001}


def test_a_broker_that_does_not_answer_ends_the_lookup(mocked: MockCluster) -> None:
    mocked.delay(2, 60_000)
    for ask in (written, current):
        with pytest.raises((TimedOut, Unreachable)):
            ask(mocked, SHORT, timeout=0.5)


def test_a_broker_that_comes_back_is_asked_again(mocked: MockCluster) -> None:
    mocked.stop(2)
    mocked.fail_partition("t", 2, FETCH, *[UNKNOWN_TOPIC] * 20)
    # Later than the client itself asks again.
    starting = threading.Timer(5, mocked.start, [2])
    starting.start()
    try:
        assert written(mocked, Patience(60, 60)) == {0: 1000, 1: 1001}
    finally:
        starting.cancel()
        starting.join()
