"""Transactional producers: transactions that commit, abort, time out, stay open, and one that no coordinator knows."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from confluent_kafka import Consumer, Producer, TopicPartition

from broker.protocol.record_batch import Record, build_batch
from tests.harness.commandline import Kgctl, append
from tests.harness.running import until

LEDGER, LEDGER_PARTS, STUCK = "ledger", 3, "stuck"
WRITER, SLOW, OPEN = "writer", "slow", "open"
COMMITTED, ABORTED = "committed", "aborted"
OFFSETS_TOPIC = "__consumer_offsets"
# Longer than a test on a busy machine.
LONG_MS = 7_200_000

Places = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Done:
    """A transaction that ended, as its producer saw it; without `topics` of __consumer_offsets. Times in ms since 1970."""

    transactional_id: str
    outcome: str
    places: Places
    began_ms: int
    ended_ms: int


@dataclass
class TransactionTraffic:
    kgctl: Kgctl
    is_kafka: bool
    done: list[Done] = field(default_factory=list)
    # Of each transaction that is open: its places and when it began.
    open: dict[str, tuple[Places, int]] = field(default_factory=dict)
    hanging_id: int | None = None
    producers: dict[str, Producer] = field(default_factory=dict)

    def create_topics(self) -> None:
        compact = ("--config", "cleanup.policy=compact", "--config", "min.cleanable.dirty.ratio=1.0")
        for topic, partitions in ((LEDGER, LEDGER_PARTS), (STUCK, 1)):
            assert self.kgctl("topics", "create", topic, "--partitions", partitions, *compact).exit_code == 0
        for name, timeout_ms in ((WRITER, 60_000), (SLOW, 1_000), (OPEN, LONG_MS)):
            self._start(name, timeout_ms)
        self._end(WRITER, COMMITTED, (0, 1, 2))
        began_ms = self._begin(SLOW, (0, 1))
        until(lambda: self.kgctl.rows("transactions", "describe", SLOW)[0]["state"] == "CompleteAbort", 30)
        self._note(SLOW, ABORTED, (0, 1), began_ms)
        # What follows in this partition is not stable.
        self.open[OPEN] = places_of((2,)), self._begin(OPEN, (2,))
        if self.is_kafka:
            # kgctl's broker refuses records of transactions that no coordinator knows.
            self.hanging_id = self._hang()

    def round(self) -> None:
        # Clients of librdkafka do not always recover when a broker restarts.
        self._start(WRITER, 60_000)
        self._end(WRITER, COMMITTED, (0, 1))
        self._end(WRITER, ABORTED, (1,))
        self._end(WRITER, COMMITTED, (1, 2))

    def commit_offsets(self, group: str, offsets: dict[tuple[str, int], int], *, is_committed: bool) -> None:
        """Commit offsets of a group in a transaction, or in one that is aborted then."""
        self._start(group, 60_000)
        producer, began_ms = self.producers[group], now()
        producer.begin_transaction()
        consumer = Consumer({"bootstrap.servers": self.kgctl.bootstrap, "group.id": group})
        wanted = [TopicPartition(*place, offset) for place, offset in offsets.items()]
        producer.send_offsets_to_transaction(wanted, consumer.consumer_group_metadata(), 30)
        consumer.close()
        (producer.commit_transaction if is_committed else producer.abort_transaction)(30)
        self.done.append(Done(group, COMMITTED if is_committed else ABORTED, (), began_ms, now()))

    def close(self) -> None:
        """Leave open transactions as they are."""
        for producer in self.producers.values():
            producer.purge()

    def _start(self, name: str, timeout_ms: int) -> None:
        where = {"bootstrap.servers": self.kgctl.bootstrap, "transactional.id": name}
        self.producers[name] = Producer({**where, "transaction.timeout.ms": timeout_ms})
        self.producers[name].init_transactions(30)

    def _begin(self, name: str, parts: tuple[int, ...]) -> int:
        began_ms, producer = now(), self.producers[name]
        producer.begin_transaction()
        for part in parts:
            for number in range(3):
                producer.produce(LEDGER, b"v", b"%d" % (number % 2), partition=part)
        assert producer.flush(30) == 0
        return began_ms

    def _end(self, name: str, outcome: str, parts: tuple[int, ...]) -> None:
        began_ms, producer = self._begin(name, parts), self.producers[name]
        (producer.commit_transaction if outcome == COMMITTED else producer.abort_transaction)(30)
        self._note(name, outcome, parts, began_ms)

    def _note(self, name: str, outcome: str, parts: tuple[int, ...], began_ms: int) -> None:
        self.done.append(Done(name, outcome, places_of(parts), began_ms, now()))

    def _hang(self) -> int:
        producer_id = 9_000_000
        records = [Record(n, now(), b"k", b"v") for n in range(2)]
        batch = build_batch(records, producer_id=producer_id, producer_epoch=0, base_sequence=0, is_transactional=True)
        with self.kgctl.admin() as admin:
            append(admin, STUCK, 0, batch, transactional_id="unknown")
        return producer_id


def places_of(parts: tuple[int, ...]) -> Places:
    return tuple((LEDGER, part) for part in parts)


def now() -> int:
    return time.time_ns() // 1_000_000
