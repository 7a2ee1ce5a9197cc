"""A running group of librdkafka's members changes its protocol member by member, and back."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from broker.local import LocalBroker
from tests.harness.clusters import fresh

confluent_kafka = pytest.importorskip("confluent_kafka")
confluent_admin = pytest.importorskip("confluent_kafka.admin")

PARTITIONS, WITHIN_S = 6, 30
QUICK = {
    "group.consumer.heartbeat.interval.ms": 100,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.initial.rebalance.delay.ms": 0,
}
# The strategy cooperative-sticky of librdkafka stores user data with assignments, which prevents an upgrade.
CLASSIC = {"partition.assignment.strategy": "range", "heartbeat.interval.ms": 100, "session.timeout.ms": 6_000}


class Records:
    """What the members of one group own and have read. Each record is to be read once."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.lock = threading.Lock()
        self.owners: dict[int, str] = {}
        self.read: dict[tuple[int, int], list[str]] = {}  # partition and offset -> who has read it
        self.problems: list[str] = []
        self.written = 0

    def wait_for(self, what: str, condition: Any) -> None:
        deadline = time.monotonic() + WITHIN_S
        while not condition():
            assert not self.problems, self.problems
            assert time.monotonic() < deadline, f"{what}; owners: {self.owners}"
            threading.Event().wait(0.02)


class Member:
    """A consumer in a thread of its own. It commits what it gives up."""

    def __init__(self, records: Records, bootstrap: str, group: str, name: str, **config: Any) -> None:
        self.records, self.name = records, name
        self._next: dict[int, int] = {}
        self._stop = threading.Event()
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "client.id": name,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                **config,
            }
        )
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(WITHIN_S)
        assert not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._consumer.subscribe(
                [self.records.topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost
            )
            while not self._stop.is_set():
                message = self._consumer.poll(0.05)
                if message is None:
                    continue
                assert message.error() is None, message.error().str()
                partition, offset = message.partition(), message.offset()
                self._next[partition] = offset + 1
                with self.records.lock:
                    self.records.read.setdefault((partition, offset), []).append(self.name)
            self._consumer.close()
        except Exception as error:  # noqa: BLE001
            self.records.problems.append(f"{self.name}: {error}")

    def _assigned(self, _: Any, partitions: list[Any]) -> None:
        with self.records.lock:
            for one in partitions:
                holder = self.records.owners.setdefault(one.partition, self.name)
                if holder != self.name:
                    self.records.problems.append(f"{one.partition} is given to {self.name}, and {holder} has it")

    def _revoked(self, consumer: Any, partitions: list[Any]) -> None:
        numbers = [one.partition for one in partitions]
        read = [
            confluent_kafka.TopicPartition(self.records.topic, number, self._next[number])
            for number in numbers
            if number in self._next
        ]
        if read:
            for one in consumer.commit(offsets=read, asynchronous=False):
                assert one.error is None, one.error
        with self.records.lock:
            for number in numbers:
                self._next.pop(number, None)
                del self.records.owners[number]

    def _lost(self, _: Any, partitions: list[Any]) -> None:
        self.records.problems.append(f"{self.name} has lost {[one.partition for one in partitions]}")


@contextmanager
def writing(records: Records, bootstrap: str) -> Iterator[None]:
    """Write to all partitions until the block ends."""
    producer, stop = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "linger.ms": 0}), threading.Event()

    def write() -> None:
        while not stop.wait(0.005):
            producer.produce(records.topic, b"", partition=records.written % PARTITIONS)
            records.written += 1
        assert producer.flush(WITHIN_S) == 0

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(WITHIN_S)


def _partitions(records: Records, before: dict[tuple[int, int], list[str]]) -> set[int]:
    """Those of which something has been read since."""
    with records.lock:
        return {partition for partition, _ in records.read.keys() - before.keys()}


def test_a_running_group_changes_its_protocol_member_by_member_and_back() -> None:
    topic, group = fresh("topic"), fresh("group")
    with LocalBroker(config=QUICK) as broker:
        bootstrap = broker.bootstrap_servers
        admin = confluent_admin.AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([confluent_admin.NewTopic(topic, PARTITIONS)])[topic].result(WITHIN_S)
        records = Records(topic)

        def member(number: int, protocol: str) -> Member:
            config: dict[str, Any] = {"group.protocol": protocol}
            config |= CLASSIC if protocol == "classic" else {}
            return Member(records, bootstrap, group, f"{protocol}-{number}", **config)

        def listed() -> tuple[str, str]:
            """The type and the state of the group."""
            [found] = [one for one in admin.list_consumer_groups().result(WITHIN_S).valid if one.group_id == group]
            return found.type.name, found.state.name

        def wait_until_shared(group_type: str) -> None:
            names = {one.name for one in members}

            def is_shared() -> bool:
                is_complete = len(records.owners) == PARTITIONS and set(records.owners.values()) == names
                return is_complete and listed() == (group_type, "STABLE")

            # A member that is behind the group epoch when the group becomes classic loses its partitions, as in Kafka.
            records.wait_for(f"{names} share all partitions", is_shared)
            with records.lock:
                before = dict(records.read)
            records.wait_for("all partitions are read", lambda: _partitions(records, before) == set(range(PARTITIONS)))

        members = [member(number, "classic") for number in range(3)]
        try:
            with writing(records, bootstrap):
                wait_until_shared("CLASSIC")
                for protocol, types in (
                    ("consumer", ["CONSUMER", "CONSUMER", "CONSUMER"]),
                    ("classic", ["CONSUMER", "CONSUMER", "CLASSIC"]),
                ):
                    for number, expected in enumerate(types):
                        members[number].stop()
                        members[number] = member(number, protocol)
                        wait_until_shared(expected)
            records.wait_for("all records are read", lambda: len(records.read) == records.written)
        finally:
            for one in members:
                one.stop()
    assert not records.problems, records.problems
    assert not records.owners
    assert {place: names for place, names in records.read.items() if len(names) > 1} == {}
