"""A following run while offsets are committed and the broker is killed and restarted: nothing is lost or doubled."""

from __future__ import annotations

import contextlib
import itertools
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.local import LocalBroker
from kgctl.client.admin.offsets import commit
from kgctl.client.net import bootstrap
from kgctl.client.net.connector import ConnectionSettings, Connector
from kgctl.client.net.errors import KgctlError
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.schemas.sources import OFFSETS_TOPIC
from tests.harness.commandline import Kgctl
from tests.kgctl.pipelines.cluster.pipeline_runs import pipeline, run_to_the_end
from tests.kgctl.pipelines.cluster.programs import Program
from tests.kgctl.pipelines.cluster.standalone import Cluster
from tests.kgctl.pipelines.cluster.waiting import await_that
from tests.kgctl.pipelines.runs import rows

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

RESTARTS, PARTITIONS = 3, 4
# A task waits a minute for an absent broker, and by default Spark tries each task four times.
FOLLOWING = ("decode", "--follow", "--trigger", "0.5", "--conf", "spark.task.maxFailures=1", "--max-outage", "1s")


@pytest.fixture
def broker() -> Iterator[LocalBroker]:
    with LocalBroker({"offsets.topic.num.partitions": PARTITIONS}) as broker:
        assert Kgctl(broker.bootstrap_servers)("topics", "create", "orders").exit_code == 0
        yield broker


def test_restarts_of_the_broker_and_its_absence_lose_and_double_nothing(
    broker: LocalBroker, cluster: Cluster, tmp_path: Path
) -> None:
    out, where = tmp_path / "out", broker.bootstrap_servers
    with committing(where) as acknowledged, pipeline(cluster, where, out, *FOLLOWING) as program:
        for _ in range(RESTARTS):
            await_rows_after(program, acknowledged)
            broker.kill()
            broker.start()
        await_rows_after(program, acknowledged)
        broker.kill()
        code = program.await_end()
        broker.start()
        await_more(acknowledged)
    (failed,) = [line for line in program.lines if line["kind"] == "failed"]
    assert code == failed["exit_code"] == 7, program.stderr_tail()
    assert "refused" in failed["text"], failed
    assert any("job decode starts again: " in line.get("text", "") for line in program.lines)
    assert "\n" not in failed["text"]
    assert program.stderr_tail().splitlines()[-1].startswith("Error: job decode failed: ")
    run_to_the_end(cluster, where, out, "decode", "--once")
    assert_all_is_there_once(out, where, acknowledged)


@contextlib.contextmanager
def committing(where: str) -> Iterator[list[str]]:
    """Commits one after another, each for a new group; yields the groups whose commits were acknowledged."""
    stop, acknowledged = threading.Event(), list[str]()
    thread = threading.Thread(target=_commit_until, args=(where, stop, acknowledged))
    thread.start()
    try:
        yield acknowledged
    finally:
        stop.set()
        thread.join()


def _commit_until(where: str, stop: threading.Event, acknowledged: list[str]) -> None:
    connector = Connector(ConnectionSettings(bootstrap.parse(where), "soak"))
    partition = TopicPartition("orders", 0)
    try:
        for number in itertools.count():
            group = f"soak-{number}"
            with contextlib.suppress(KgctlError):
                if connector.run(commit(connector.cluster, group, {partition: number}), 2) == {partition: None}:
                    acknowledged.append(group)
            if stop.wait(0.005):
                return
    finally:
        connector.close()


def await_more(acknowledged: list[str]) -> str:
    """A commit that is acknowledged after this call."""
    known = len(acknowledged)
    await_that(lambda: len(acknowledged) > known, "no commit was acknowledged")
    return acknowledged[-1]


def await_rows_after(program: Program, acknowledged: list[str]) -> None:
    """Wait until the table has a commit that was made after this call."""
    done = sum(line["kind"] == "progress" for line in program.lines)
    await_more(acknowledged)
    # The current batch may have been planned before.
    program.await_that(
        lambda: sum(line["kind"] == "progress" for line in program.lines) >= done + 2, "no batches after the commit"
    )


def assert_all_is_there_once(out: Path, where: str, acknowledged: list[str]) -> None:
    found = [row for row in rows(out, "commits") if row["group"].startswith("soak-")]
    places = {(row["log_partition"], row["log_offset"]): row["group"] for row in found}
    assert len(places) == len(found)
    assert set(acknowledged) <= set(places.values())
    log = places_in_the_log(where, set(range(PARTITIONS)))
    assert log.items() <= places.items()
    # Records that are compacted away were committed again by a client that got no answer.
    assert set(places.values()) == set(log.values())
    assert len(acknowledged) > 100


def places_in_the_log(where: str, partitions: set[int]) -> dict[tuple[int, int], str]:
    """Partition and offset of each commit of these tests, with its group, as librdkafka reads them."""
    from confluent_kafka import Consumer, KafkaError
    from confluent_kafka import TopicPartition as OtherPartition

    options: dict[str, Any] = {"bootstrap.servers": where, "group.id": "reader", "enable.auto.commit": False}
    consumer = Consumer({**options, "enable.partition.eof": True})
    found, ended = dict[tuple[int, int], str](), set[int]()
    try:
        consumer.assign([OtherPartition(OFFSETS_TOPIC, number, 0) for number in partitions])
        while ended != partitions:
            for message in consumer.consume(1000, 5):
                error, key = message.error(), message.key()
                if error is not None:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    ended.add(message.partition())
                elif key is not None and key[:2] in (b"\0\0", b"\0\1"):
                    (length,) = struct.unpack_from(">h", key, 2)
                    group = key[4 : 4 + length].decode()
                    if group.startswith("soak-"):
                        found[message.partition(), message.offset()] = group
    finally:
        consumer.close()
    return found
