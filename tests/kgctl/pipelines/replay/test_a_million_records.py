"""A million records of every kind are archived, verified and replayed, and arrive byte by byte as they were written."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Place

from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl
from tests.kgctl.pipelines.archive.clusters import CODECS
from tests.kgctl.pipelines.archive.making import NOON_MS

RECORDS, PARTITIONS = 1_000_000, 6
# In rounds of every codec: plain records, a committed transaction, an aborted one.
ROUNDS = 5
PLAIN, COMMITTED, ABORTED = 30_000, 10_000, 2_000
BLOCKS = [random.Random(7).randbytes(size) for size in (1, 40, 100, 300)]
DAY_MS = 86_400_000
Headers = list[tuple[str, bytes | None]]
Record = tuple[bytes | None, bytes | None, Headers, int]


def record(number: int) -> Record:
    """Keys and values that are null, empty, short, or do not compress; no, some and repeated headers; times of three days."""
    key = (None, b"", b"key %d" % (number % 1000))[min(number % 7, 2)]
    value = (None, b"", b"value %d" % number, BLOCKS[number % 4] + b"%d" % number)[min(number % 11, 3)]
    headers: Headers = [("trace", b"%d" % number), ("trace", None), ("", b""), ("ü", b"\xff\x00")][
        : max(0, number % 8 - 3)
    ]
    return key, value, headers, NOON_MS + number % 3 * DAY_MS + number


def digest(one: Record) -> bytes:
    return blake2b(repr(one).encode(), digest_size=16).digest()


class Original:
    """Writes records, and keeps what a consumer with isolation.level=read_committed must get from each partition."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.digests: dict[int, list[bytes]] = {number: [] for number in range(PARTITIONS)}
        self._bootstrap, self._topic = bootstrap, topic
        self._next = 0
        self._failed: list[object] = []

    def write(self) -> None:
        for round_ in range(ROUNDS):
            for codec in CODECS:
                config = {"bootstrap.servers": self._bootstrap, "compression.type": codec, "linger.ms": 20}
                self._write(Producer({**config, "batch.num.messages": 37 + 1000 * round_}), PLAIN)
                producer = Producer({**config, "transactional.id": fresh("tx")})
                producer.init_transactions(60)
                for count, is_committed in ((COMMITTED, True), (ABORTED, False)):
                    producer.begin_transaction()
                    self._write(producer, count, is_kept=is_committed)
                    (producer.commit_transaction if is_committed else producer.abort_transaction)(60)
        assert not self._failed, self._failed[:3]

    def _write(self, producer: Producer, count: int, *, is_kept: bool = True) -> None:
        for number in range(self._next, self._next + count):
            key, value, headers, moment = one = record(number)
            # Runs of records, so that batches have more than one.
            partition = number // 5 % PARTITIONS
            while True:
                try:
                    producer.produce(
                        self._topic,
                        value,
                        key,
                        partition,
                        timestamp=moment,
                        headers=headers,
                        on_delivery=self._delivered,
                    )
                    break
                except BufferError:
                    producer.poll(0.1)
            producer.poll(0)
            if is_kept:
                self.digests[partition].append(digest(one))
        self._next += count
        assert producer.flush(60) == 0

    def _delivered(self, error: object, _: object) -> None:
        if error:
            self._failed.append(error)


def read(bootstrap: str, topic: str) -> dict[int, list[bytes]]:
    """The committed records of each partition as librdkafka delivers them."""
    config = {
        "bootstrap.servers": bootstrap,
        "group.id": "truth",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
    }
    consumer = Consumer(config)
    consumer.assign([Place(topic, number, 0) for number in range(PARTITIONS)])
    found: dict[int, list[bytes]] = {number: [] for number in range(PARTITIONS)}
    left = set(found)
    while left:
        messages = consumer.consume(10_000, 20)
        assert messages, f"no end of partitions {left}"
        for message in messages:
            if message.error() is not None:
                left.discard(message.partition())
                continue
            one = message.key(), message.value(), message.headers() or [], message.timestamp()[1]
            found[message.partition()].append(digest(one))
    consumer.close()
    return found


def differences(found: dict[int, list[bytes]], expected: dict[int, list[bytes]]) -> list[str]:
    """Short: a million digests are no message."""
    wrong = []
    for number, some in expected.items():
        if found[number] != some:
            pairs = zip(found[number], some, strict=False)
            at = next((at for at, (one, other) in enumerate(pairs) if one != other), min(len(found[number]), len(some)))
            wrong.append(
                f"partition {number}: {len(found[number])} records, {len(some)} were written; record {at} differs"
            )
    return wrong


@contextmanager
def timed(step: str) -> Iterator[None]:
    """Shown with `pytest -s`."""
    began = time.monotonic()
    yield
    seconds = time.monotonic() - began
    print(f"{step}: {seconds:.1f} s, {RECORDS / seconds:,.0f} records/s")


@pytest.mark.soak
@pytest.mark.spark
@pytest.mark.timeout(1500)
def test_a_million_records_of_every_kind_arrive_byte_by_byte(cluster: Cluster, tmp_path: Path) -> None:
    kgctl, bootstrap = Kgctl(cluster.bootstrap_servers), cluster.bootstrap_servers
    source, target = fresh("million"), fresh("million-copy")
    made = kgctl("topics", "create", source, "--partitions", PARTITIONS, "--config", "retention.ms=-1")
    assert made.exit_code == 0, made.output
    original = Original(bootstrap, source)
    with timed("produce"):
        original.write()
    assert sum(map(len, original.digests.values())) == RECORDS
    for step, arguments in {
        "archive": ["archive", source, "--out", tmp_path, "--max-offsets-per-trigger", 400_000],
        "verify": ["verify", tmp_path],
        "verify --against": ["verify", tmp_path, "--against", bootstrap],
        "replay": ["replay", tmp_path, "--to", target, "--create", "--execute", "--no-journal"],
    }.items():
        with timed(step):
            done = kgctl("pipeline", *arguments)
        assert done.exit_code == 0, done.output
    with timed("read"):
        found = read(bootstrap, target)
    assert differences(found, original.digests) == []
