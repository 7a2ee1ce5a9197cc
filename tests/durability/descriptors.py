"""Many partitions for a broker that may open few files: everything produced is delivered, and the broker keeps running."""

from __future__ import annotations

import os
import resource
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.fetch import FetchRequest
from broker.protocol.messages.produce import ProduceRequest
from tests.durability.parts import Violation
from tests.harness.broker_program import Program, started
from tests.harness.requests import batch, create_topic, values_of
from tests.harness.wire_client import WireClient

TOPIC = "wide"
# Above this size the broker sends a slice of a file with sendfile.
LARGE_BYTES = 100_000
SMALL_BYTES = 100
ANSWER_BYTES = 50 << 20
PARTITIONS_PER_PRODUCE = 250
DONE_WITHIN_S = 300.0


class Scenario(NamedTuple):
    """The limit of the broker, the partitions of the topic, and the connections that only exist."""

    descriptors: int
    partitions: int
    connections: int
    large_every: int  # every so many-th partition has large batches
    batches: int = 4


SCENARIOS = (Scenario(64, 60, 4, 1), Scenario(64, 60, 4, 3), Scenario(1024, 5000, 690, 10, batches=2))


def run(directory: Path, seed: int, rounds: int, report: Callable[[str], None]) -> dict[str, object]:
    figures: dict[str, object] = {}
    for number in range(rounds):
        for scenario in SCENARIOS:
            name = f"{scenario.descriptors} descriptors, {scenario.partitions} partitions"
            data_dir = directory / f"{number}-{scenario.descriptors}-{scenario.large_every}"
            try:
                found = Trial(data_dir, scenario, Random(seed + number)).run()
            except (AssertionError, OSError) as error:
                raise Violation(f"round {number + 1}, {name}: {error}") from error
            report(f"round {number + 1}, {name}: {found}")
            figures[f"{name}, {1 / scenario.large_every:.0%} large"] = found
    return figures


def value_of(scenario: Scenario, index: int, number: int) -> bytes:
    size = SMALL_BYTES if index % scenario.large_every else LARGE_BYTES
    return b"%d:%d:" % (index, number) + b"." * size


class Trial:
    """One broker under one limit."""

    def __init__(self, data_dir: Path, scenario: Scenario, random: Random) -> None:
        self._data_dir, self._scenario, self._random = data_dir, scenario, random
        self._stopped = False
        self._address = ("127.0.0.1", 0)

    def run(self) -> dict[str, object]:
        began = time.monotonic()
        with self._broker() as program, watched(program.pid) as most, ExitStack() as stack:
            for _ in range(self._scenario.connections):
                stack.enter_context(socket.create_connection(self._address))
            producer = stack.enter_context(self._client())
            create_topic(producer, TOPIC, self._scenario.partitions)
            half = self._scenario.batches // 2
            self._produce(producer, range(half))
            slow = [stack.enter_context(self._client()) for _ in range(2)]
            for client in slow:
                # More than a segment of the loopback, or the window does not open again for minutes.
                client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 256 << 10)
                client.send(wide_fetch(dict.fromkeys(self._shuffled(), 0)), 12)
            second_half = partial(self._produce, producer, range(half, self._scenario.batches))
            self._together(program, [second_half, self._raw, self._raw, self._librdkafka, self._kafka_python])
            for client in slow:
                Reader(self._scenario, client).finish(answered=True)
            self._end(program, signal.SIGKILL if self._random.random() < 0.5 else signal.SIGTERM)
        with self._broker() as program, self._client() as client:
            Reader(self._scenario, client).finish()
            self._end(program, signal.SIGTERM)
        return {**most, "seconds": round(time.monotonic() - began, 1)}

    def _together(self, program: Program, calls: list[Callable[[], None]]) -> None:
        """Make the calls at the same time. AssertionError if the broker ends or a call fails."""
        failures: list[BaseException] = []

        def guarded(call: Callable[[], None]) -> None:
            try:
                call()
            except BaseException as error:  # noqa: BLE001  raised below
                failures.append(error)

        threads = [threading.Thread(target=guarded, args=(call,)) for call in calls]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            self._stopped = program.process.poll() is not None or bool(failures)
            time.sleep(0.1)
        assert program.process.poll() is None, f"the broker ended: {program.end()}"
        if failures:
            raise failures[0]

    @contextmanager
    def _broker(self) -> Iterator[Program]:
        limit = (self._scenario.descriptors,) * 2
        self._data_dir.mkdir(exist_ok=True)
        with started(
            self._data_dir,
            preexec_fn=partial(resource.setrlimit, resource.RLIMIT_NOFILE, limit),
            start_new_session=True,
        ) as program:
            host, _, port = program.ready().address.rpartition(":")
            self._address = host, int(port)
            yield program

    def _end(self, program: Program, number: signal.Signals) -> None:
        assert program.process.poll() is None, f"the broker ended: {program.end()}"
        program.process.send_signal(number)
        code, stderr = program.end()
        assert code == (0 if number == signal.SIGTERM else -number), stderr
        assert "ERROR" not in stderr, stderr

    def _client(self) -> WireClient:
        return WireClient(self._address, timeout_s=60)

    def _shuffled(self) -> list[int]:
        order = list(range(self._scenario.partitions))
        self._random.shuffle(order)
        return order

    def _produce(self, client: WireClient, numbers: Iterable[int]) -> None:
        for number in numbers:
            order = self._shuffled()
            for at in range(0, len(order), PARTITIONS_PER_PRODUCE):
                data = [
                    ProduceRequest.Partition(index=index, records=batch(value_of(self._scenario, index, number)))
                    for index in order[at : at + PARTITIONS_PER_PRODUCE]
                ]
                topic = ProduceRequest.Topic(name=TOPIC, partition_data=data)
                answer = client.ask(ProduceRequest(acks=-1, timeout_ms=60_000, topic_data=[topic]), 12)
                for row in answer.responses[0].partition_responses:
                    assert row.error_code == ErrorCode.NONE, f"produce to {row.index}: {ErrorCode(row.error_code).name}"

    def _raw(self) -> None:
        with self._client() as client:
            Reader(self._scenario, client).finish()

    def _librdkafka(self) -> None:
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": "g", "auto.offset.reset": "error"})
        tally = Tally(self._scenario)
        try:
            consumer.assign([TopicPartition(TOPIC, index, 0) for index in self._shuffled()])
            while not tally.complete and not self._stopped:
                for message in consumer.consume(5000, timeout=1):
                    assert message.error() is None, message.error()
                    tally.note(message.partition(), message.offset(), message.value())
        finally:
            consumer.close()

    def _kafka_python(self) -> None:
        from kafka import KafkaConsumer, TopicPartition

        consumer = KafkaConsumer(bootstrap_servers=self._bootstrap, group_id=None, auto_offset_reset="earliest")
        tally = Tally(self._scenario)
        try:
            consumer.assign([TopicPartition(TOPIC, index) for index in self._shuffled()])
            while not tally.complete and not self._stopped:
                for records in consumer.poll(timeout_ms=1000, max_records=5000).values():
                    for record in records:
                        tally.note(record.partition, record.offset, record.value)
        finally:
            consumer.close()

    @property
    def _bootstrap(self) -> str:
        return f"{self._address[0]}:{self._address[1]}"


class Tally:
    """What one consumer has received: each record of each partition once and in order."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self.next = dict.fromkeys(range(scenario.partitions), 0)
        self._deadline = time.monotonic() + DONE_WITHIN_S

    @property
    def complete(self) -> bool:
        assert time.monotonic() < self._deadline, f"{sum(self.next.values())} records arrived in time"
        return all(offset == self._scenario.batches for offset in self.next.values())

    def note(self, index: int, offset: int, value: bytes | None) -> None:
        assert offset == self.next[index], f"partition {index}: offset {offset} instead of {self.next[index]}"
        assert value == value_of(self._scenario, index, offset), f"partition {index}: another value at offset {offset}"
        self.next[index] += 1


class Reader:
    """Reads all partitions with as few requests as the limits of an answer allow."""

    def __init__(self, scenario: Scenario, client: WireClient) -> None:
        self._client = client
        self._tally = Tally(scenario)
        self._batches = scenario.batches

    def finish(self, *, answered: bool = False) -> None:
        """Read everything. `answered`: the answer to a first request is under way."""
        while not self._tally.complete:
            left = {index: offset for index, offset in self._tally.next.items() if offset < self._batches}
            answer = self._client.receive() if answered else self._client.ask(wide_fetch(left), 12)
            answered = False
            for row in answer.responses[0].partitions:
                assert row.error_code == ErrorCode.NONE, f"fetch of {row.partition_index}: {row.error_code}"
                for value in values_of(row):
                    self._tally.note(row.partition_index, self._tally.next[row.partition_index], value)


def wide_fetch(offsets: dict[int, int]) -> FetchRequest:
    rows: list[Any] = [
        FetchRequest.Partition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
        for index, offset in offsets.items()
    ]
    topic = FetchRequest.Topic(topic=TOPIC, partitions=rows)
    return FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=ANSWER_BYTES, topics=[topic])


@contextmanager
def watched(pid: int) -> Iterator[dict[str, object]]:
    """The most descriptors, of a sample, and the most memory of a process."""
    most: dict[str, object] = {"descriptors": 0, "memory_mb": 0}
    ended = threading.Event()

    def sample() -> None:
        while not ended.wait(0.005):
            try:
                count = len(os.listdir(f"/proc/{pid}/fd"))
                status = Path(f"/proc/{pid}/status").read_text()
            except OSError:
                return
            most["descriptors"] = max(int(str(most["descriptors"])), count)
            peak = status.partition("VmHWM:")[2].split()
            if peak:
                most["memory_mb"] = int(peak[0]) // 1024

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield most
    finally:
        ended.set()
        thread.join()
