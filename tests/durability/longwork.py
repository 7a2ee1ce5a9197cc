"""Long work on a million committed offsets, while a second client asks without pause: no operation may hold it up.

Prints the worst wait of that client for each operation. One round is a thousand offsets.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from broker.cores.groups.records import OffsetCommitRecord, to_row
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.delete_groups import DeleteGroupsRequest
from broker.protocol.messages.delete_topics import DeleteTopicsRequest
from broker.protocol.messages.describe_groups import DescribeGroupsRequest
from broker.protocol.messages.list_groups import ListGroupsRequest
from broker.protocol.messages.list_offsets import ListOffsetsRequest
from broker.protocol.messages.offset_commit import OffsetCommitRequest
from broker.protocol.messages.offset_delete import OffsetDeleteRequest
from broker.protocol.messages.offset_fetch import OffsetFetchRequest
from broker.protocol.offsets_topic import PARTITIONS
from broker.protocol.wire_types import ZERO_UUID
from broker.storage import OFFSETS_TOPIC, Log, LogSettings
from tests.durability.parts import Violation
from tests.durability.pinging import Pinger
from tests.harness.broker_program import started
from tests.harness.wire_client import WireClient

LONGEST_MS = 100
QUIET_S = 2.0
LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
AN_HOUR_MS = 3_600_000
OPTIONS = ("group.initial.rebalance.delay.ms=0", "log.cleaner.backoff.ms=1000")


class Shape(NamedTuple):
    """How the offsets lie: each group commits every partition of every topic."""

    name: str
    groups: int
    topics: int
    partitions: int

    def group(self, number: int) -> str:
        return f"group-{number:05}"

    def topic(self, number: int) -> str:
        return f"topic-{number:04}"

    @property
    def group_names(self) -> list[str]:
        return [self.group(number) for number in range(self.groups)]


def shapes(thousands: int) -> list[Shape]:
    return [
        Shape("many groups", 10 * thousands, 1, 100),
        Shape("few groups", 3, 1, 1000 * thousands // 3),
        Shape("many topics", 100, thousands, 10),
    ]


def run(directory: Path, seed: int, rounds: int, report: Callable[[str], None]) -> dict[str, object]:
    worst: dict[str, float] = {}
    for shape in shapes(rounds):
        for scenario in (_serve, _expire):
            at = directory / f"{shape.name} {scenario.__name__}"
            _fill(at, shape)
            scenario(at, shape, worst, report)
    late = {what: ms for what, ms in worst.items() if ms > LONGEST_MS}
    if late:
        raise Violation(f"round {rounds}: another client waited longer than {LONGEST_MS} ms: {late}")
    return {"longest waits in ms": worst}


def _fill(data_dir: Path, shape: Shape) -> None:
    """Commit every offset an hour ago, and leave the store as a kill would."""
    now_ms = time.time_ns() // 1_000_000
    log = Log.open(data_dir, LogSettings(), wall_ms=now_ms)
    for topic in range(shape.topics):
        log.create_topic(shape.topic(topic), shape.partitions, {})
    rows = (
        to_row(OffsetCommitRecord(shape.group(group), shape.topic(topic), at, at, -1, "", now_ms - AN_HOUR_MS))
        for group in range(shape.groups)
        for topic in range(shape.topics)
        for at in range(shape.partitions)
    )
    while chunk := list(islice(rows, 10_000)):
        log.append_rows(OFFSETS_TOPIC, chunk)
        log.flush()
        log.sweep(now_ms)
    log.close(clean=False)


class Watch:
    """Runs operations on a broker, and notes how long the second client waited in each."""

    def __init__(self, pinger: Pinger, shape: Shape, worst: dict[str, float], report: Callable[[str], None]) -> None:
        self._pinger, self._shape, self._worst, self._report = pinger, shape, worst, report

    def during(self, what: str, operation: Callable[[], Any]) -> Any:
        self._pinger.worst()
        began = time.monotonic()
        result = operation()
        took = time.monotonic() - began
        waits = self._pinger.worst()
        name = f"{self._shape.name}: {what}"
        self._worst[name] = round(waits.held, 1)
        self._report(
            f"{name}: {waits.held:.0f} ms ({waits.waited:.0f} ms with other programs, {waits.request}); {took:.1f} s"
        )
        return result


@contextlib.contextmanager
def _broker(data_dir: Path, *options: str) -> Iterator[tuple[tuple[str, int], int]]:
    given = [part for option in (*OPTIONS, *options) for part in ("--override", option)]
    with started(data_dir, *given) as program:
        # It logs a line for each group that it deletes: a full pipe would hold it up.
        threading.Thread(target=program.process.stderr.read, daemon=True).start()
        host, _, port = program.ready().address.rpartition(":")
        yield (host, int(port)), program.pid
        program.process.terminate()
        program.process.wait(60)


def _serve(data_dir: Path, shape: Shape, worst: dict[str, float], report: Callable[[str], None]) -> None:
    with _broker(data_dir) as (address, pid), contextlib.closing(Pinger(address, pid)) as pinger:
        watch = Watch(pinger, shape, worst, report)
        with WireClient(address, timeout_s=300) as client:
            watch.during("idle", lambda: time.sleep(QUIET_S))
            watch.during("first OffsetFetch", lambda: _fetch_all(client, shape, 0))
            watch.during("OffsetFetch", lambda: _fetch_all(client, shape, 0))
            watch.during("ListGroups", lambda: client.ask(ListGroupsRequest()))
            watch.during("DescribeGroups", lambda: client.ask(DescribeGroupsRequest(groups=_names(30_000)), 5))
            for name, timestamp in (
                ("earliest", EARLIEST),
                ("max timestamp", MAX_TIMESTAMP),
                ("time", time.time_ns() // 10**6 - 1000),
            ):
                watch.during(f"ListOffsets {name}", lambda timestamp=timestamp: _list_offsets(client, timestamp))
            watch.during("kafka-python", lambda: _consume_with_kafka_python(address))
            watch.during("librdkafka", lambda: _consume_with_librdkafka(address))
            watch.during("OffsetCommit", lambda: _commit(client, shape, 10_000))
            watch.during("OffsetDelete", lambda: _delete_offsets(client, shape, 1, 29_990))
            watch.during("DeleteTopics", lambda: _delete_topics(client, shape))
            watch.during("after DeleteTopics", lambda: _until_quiet(client))
            watch.during("DeleteGroups", lambda: _delete_groups(client, shape))
            watch.during("after DeleteGroups", lambda: _until_quiet(client))


def _expire(data_dir: Path, shape: Shape, worst: dict[str, float], report: Callable[[str], None]) -> None:
    options = ("offsets.retention.minutes=1", "offsets.retention.check.interval.ms=3000")
    with _broker(data_dir, *options) as (address, pid), contextlib.closing(Pinger(address, pid)) as pinger:
        watch = Watch(pinger, shape, worst, report)
        with WireClient(address, timeout_s=300) as client:
            watch.during("load before expiry", lambda: _fetch_all(client, shape, 0))
            watch.during("expiry", lambda: (time.sleep(4), _until_quiet(client)))


def _names(count: int) -> list[str]:
    return [f"unknown-{number}" for number in range(count)]


def _fetch_all(client: WireClient, shape: Shape, number: int) -> None:
    asked = OffsetFetchRequest.Group(group_id=shape.group(number), topics=None)
    (found,) = client.ask(OffsetFetchRequest(groups=[asked]), 8).groups
    assert sum(len(topic.partitions) for topic in found.topics) == shape.topics * shape.partitions


def _list_offsets(client: WireClient, timestamp: int) -> list[int]:
    asked = [ListOffsetsRequest.Partition(partition_index=at, timestamp=timestamp) for at in range(PARTITIONS)]
    topic = ListOffsetsRequest.Topic(name=OFFSETS_TOPIC, partitions=asked)
    (found,) = client.ask(ListOffsetsRequest(replica_id=-1, topics=[topic]), 7).topics
    assert not any(row.error_code for row in found.partitions)
    return [row.offset for row in found.partitions]


def _consume_with_kafka_python(address: tuple[str, int]) -> None:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(
        bootstrap_servers=f"{address[0]}:{address[1]}", auto_offset_reset="earliest", exclude_internal_topics=False
    )
    everything = [TopicPartition(OFFSETS_TOPIC, at) for at in range(PARTITIONS)]
    consumer.assign(everything)
    ends = consumer.end_offsets(everything)
    left = {at for at in everything if ends[at]}
    deadline = time.monotonic() + 15
    while left and time.monotonic() < deadline:
        consumer.poll(1000, max_records=100_000)
        left = {at for at in left if consumer.position(at) < ends[at]}
    consumer.close(autocommit=False)


def _consume_with_librdkafka(address: tuple[str, int]) -> None:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": f"{address[0]}:{address[1]}",
            "group.id": "reader",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(OFFSETS_TOPIC, at, 0) for at in range(PARTITIONS)])
    ended: set[int] = set()
    while len(ended) < PARTITIONS:
        for message in consumer.consume(10_000, 1.0):
            if message.error() is not None:
                ended.add(message.partition())
    consumer.close()


def _commit(client: WireClient, shape: Shape, most: int) -> None:
    rows = [
        OffsetCommitRequest.Partition(partition_index=at, committed_offset=at + 1, committed_metadata="")
        for at in range(min(shape.partitions, most))
    ]
    topics = [
        OffsetCommitRequest.Topic(name=shape.topic(number), partitions=rows)
        for number in range(min(shape.topics, most // len(rows)))
    ]
    request = OffsetCommitRequest(
        group_id=shape.group(0), generation_id_or_member_epoch=-1, member_id="", topics=topics
    )
    answered = client.ask(request, 8).topics
    assert not any(row.error_code for topic in answered for row in topic.partitions)


def _delete_offsets(client: WireClient, shape: Shape, number: int, most: int) -> None:
    rows = [OffsetDeleteRequest.Partition(partition_index=at) for at in range(min(shape.partitions, most))]
    topics = [
        OffsetDeleteRequest.Topic(name=shape.topic(at), partitions=rows)
        for at in range(min(shape.topics, most // (len(rows) + 1)))
    ]
    answered = client.ask(OffsetDeleteRequest(group_id=shape.group(number), topics=topics), 0)
    assert answered.error_code == ErrorCode.NONE
    assert not any(row.error_code for topic in answered.topics for row in topic.partitions)


def _delete_topics(client: WireClient, shape: Shape) -> None:
    """All but one, so that the groups keep offsets."""
    topics = [
        DeleteTopicsRequest.Topic(name=shape.topic(number), topic_id=ZERO_UUID)
        for number in range(max(1, shape.topics - 1))
    ]
    assert not any(
        row.error_code for row in client.ask(DeleteTopicsRequest(topics=topics, timeout_ms=300_000), 6).responses
    )


def _delete_groups(client: WireClient, shape: Shape) -> None:
    names = shape.group_names[:30_000]
    assert not any(row.error_code for row in client.ask(DeleteGroupsRequest(groups_names=names), 2).results)


def _until_quiet(client: WireClient) -> None:
    """Wait until no more records come."""
    before: list[int] = []
    while (now := _list_offsets(client, LATEST)) != before:
        before = now
        time.sleep(QUIET_S)
