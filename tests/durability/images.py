"""Data directories to damage: real brokers wrote them, and a ledger lists everything that they acknowledged."""

from __future__ import annotations

import shutil
import struct
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import NamedTuple

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.delete_records import DeleteRecordsRequest
from broker.protocol.messages.delete_topics import DeleteTopicsRequest
from broker.protocol.messages.init_producer_id import InitProducerIdRequest
from broker.protocol.messages.metadata import MetadataRequest
from broker.protocol.record_batch import Record, batches, build_batch, decode_records, parse_header
from tests.durability.spawning import Nursery, Process
from tests.harness.requests import commit_request, create_topic, fetch, produce_request
from tests.harness.wire_client import WireClient

ALL = {"retention_ms": "-1", "segment_ms": "1000"}
TOPICS = {"a": (3, ALL), "b": (2, ALL), "large": (1, ALL), "own": (1, ALL)}
COMPACTED = "keys"
GROUPS = ("readers", "writers")
BATCH_EVERY_MS = 130
HOUR_MS = 3_600_000
# Nothing changes segments while they are compared.
QUIET = ("--override", "log.cleaner.backoff.ms=3600000", "--override", "log.retention.check.interval.ms=3600000")
COMPACTING = ("--override", "log.cleaner.backoff.ms=50")
REST_S = 2.5


class Refused(AssertionError):
    """A batch is refused because of damage."""


class Batch(NamedTuple):
    """An acknowledged batch, as it must lie in the file and be served."""

    base_offset: int
    last_offset: int
    content: bytes
    times: tuple[tuple[int, int], ...]
    """(offset, timestamp) of its records."""


@dataclass
class Partition:
    batches: list[Batch] = field(default_factory=list)
    log_start: int = 0
    unanswered: bytes | None = None
    """A batch whose request got no answer, as the client sent it: it may be at the end, or not."""

    @property
    def end(self) -> int:
        return self.batches[-1].last_offset + 1 if self.batches else 0

    @property
    def offsets(self) -> set[int]:
        return {offset for batch in self.batches for offset, _ in batch.times if offset >= self.log_start}


@dataclass
class Ledger:
    """Everything that a broker acknowledged."""

    partitions: dict[tuple[str, int], Partition] = field(default_factory=lambda: defaultdict(Partition))
    topics: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    """Number of partitions and id."""
    deleted: dict[str, bytes] = field(default_factory=dict)
    commits: dict[tuple[str, str, int], list[int]] = field(default_factory=lambda: defaultdict(list))
    """All committed offsets by group, topic and partition."""
    latest: dict[bytes, bytes] = field(default_factory=dict)
    """The last value of each key of the compacted topic."""
    producer: tuple[int, int] = (-1, -1)
    sequence: int = 0
    """The next sequence number of the producer of the topic `own`."""


@dataclass
class Image:
    """A data directory and earlier states of it, each as a run of the broker left it."""

    directory: Path
    earlier: list[Path]
    ledger: Ledger
    durability: str
    ended: tuple[str, ...]
    """How each run ended."""


def make(nursery: Nursery, directory: Path, random: Random) -> Image:
    """Two or three runs of a broker. Each ends with a stop or with kill -9, in which case the store lags behind the files."""
    durability = random.choice(("power", "power", "process"))
    runs = random.randrange(2, 4)
    directory.mkdir(parents=True, exist_ok=True)
    image = Image(directory / "data", [], Ledger(), durability, ())
    writer = Writer(image.ledger, random)
    for run in range(runs):
        is_last, rests = run == runs - 1, random.random() < 0.1
        settings = COMPACTING if rests and not is_last else QUIET
        process = nursery.spawn(image.directory, "--durability", durability, *settings).ready()
        with process.client() as client:
            writer.write(client, run)
            if is_last:
                writer.finish(client)
        if rests:
            # Housekeeping compacts, moves the WAL into the store, and checkpoints idle partitions.
            time.sleep(REST_S)
        how = random.choice(("stop", "kill"))
        _end(process, how)
        image.ended += (how,)
        if not is_last:
            image.earlier.append(directory / f"earlier-{run}")
            shutil.copytree(image.directory, image.earlier[-1])
    return image


def _end(process: Process, how: str) -> None:
    if how == "kill":
        process.kill()
    else:
        process.stop()


def as_stored(batch: bytes, base_offset: int) -> bytes:
    """The batch with the two fields that the broker sets: the base offset and the leader epoch, which is 0."""
    return struct.pack(">q", base_offset) + batch[8:12] + bytes(4) + batch[16:]


class Writer:
    """A client: what it sends is in the ledger once it is acknowledged."""

    def __init__(self, ledger: Ledger, random: Random, age_ms: int = HOUR_MS) -> None:
        """`age_ms`: of the first record."""
        self._ledger, self._random = ledger, random
        self._now = int(time.time() * 1000) - age_ms
        self._number = 0

    def write(self, client: WireClient, run: int) -> None:
        random, ledger = self._random, self._ledger
        if run == 0:
            for name, (partitions, configs) in TOPICS.items():
                self.create(client, name, partitions, configs)
            self.create(client, COMPACTED, 1, {**ALL, "cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0"})
            self.create(client, "gone", 1, ALL)
            self.produce(client, "gone", 0)
            answer = client.ask(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000))
            ledger.producer = (answer.producer_id, answer.producer_epoch)
        elif run == 1:
            self._delete(client, "gone")
            self.create(client, "late", 2, ALL)
        # Some partitions rest for a whole run, so that the store says that they were closed.
        busy = [(t, p) for t, (n, _) in ledger.topics.items() for p in range(n) if random.random() < 0.7]
        for _ in range(random.randrange(10, 26)):
            self.later()
            for topic, partition in busy:
                if random.random() < 0.8:
                    self.produce(client, topic, partition)
            if random.random() < 0.4:
                self.commit(client)
        if random.random() < 0.5:
            self._delete_records(client)

    def later(self) -> None:
        """The next records are some milliseconds newer."""
        self._now += BATCH_EVERY_MS

    def create(self, client: WireClient, name: str, partitions: int, configs: dict[str, str]) -> None:
        create_topic(client, name, partitions, **configs)
        answer = client.ask(MetadataRequest(topics=[MetadataRequest.Topic(name=name)]), 12)
        self._ledger.topics[name] = (partitions, answer.topics[0].topic_id)

    def _delete(self, client: WireClient, name: str) -> None:
        request = DeleteTopicsRequest(topics=[DeleteTopicsRequest.Topic(name=name)], timeout_ms=1000)
        assert client.ask(request).responses[0].error_code == ErrorCode.NONE
        partitions, topic_id = self._ledger.topics.pop(name)
        self._ledger.deleted[name] = topic_id
        for partition in range(partitions):
            del self._ledger.partitions[name, partition]

    def produce(self, client: WireClient, topic: str, partition: int) -> None:
        count = 1 + self._number % 3
        size = 30_000 if topic.startswith("large") else 40
        records = []
        for at in range(count):
            self._number += 1
            # Values of one length: segments of `a` and `b` then have the same shape.
            value = f"{topic} {partition} {self._number:08} ".ljust(size, "-").encode()
            key = b"k%d" % self._random.randrange(12) if topic.startswith(COMPACTED) else None
            records.append(Record(at, self._now + self._random.randrange(100), key, value))
        arguments = {}
        if topic == "own":
            producer_id, epoch = self._ledger.producer
            arguments = {"producer_id": producer_id, "producer_epoch": epoch, "base_sequence": self._ledger.sequence}
        content = build_batch(records, base_offset=0, **arguments)
        known = self._ledger.partitions[topic, partition]
        known.unanswered = content
        answer = client.ask(produce_request(topic, content, partition=partition), 12)
        known.unanswered = None
        row = answer.responses[0].partition_responses[0]
        if row.error_code in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.KAFKA_STORAGE_ERROR):
            raise Refused(f"Produce to {topic}-{partition}: error {row.error_code}")
        assert row.error_code == ErrorCode.NONE, f"Produce to {topic}-{partition}: error {row.error_code}"
        assert row.base_offset == known.end, f"{topic}-{partition}: offset {row.base_offset}, expected {known.end}"
        known.batches.append(batch_of(as_stored(content, row.base_offset)))
        if topic == "own":
            self._ledger.sequence += count
        if topic == COMPACTED:
            self._ledger.latest.update((record.key or b"", record.value or b"") for record in records)

    def commit(self, client: WireClient) -> None:
        group, topic = self._random.choice(GROUPS), self._random.choice(("a", "b"))
        partition = self._random.randrange(self._ledger.topics[topic][0])
        offset = self._random.randrange(self._ledger.partitions[topic, partition].end + 1)
        answer = client.ask(commit_request(group, None, topic, offset, partition), 8)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE
        self._ledger.commits[group, topic, partition].append(offset)

    def _delete_records(self, client: WireClient) -> None:
        known = self._ledger.partitions["a", 0]
        if not known.batches:
            return
        known.log_start = self._random.randrange(known.log_start, known.end + 1)
        part = DeleteRecordsRequest.Partition(partition_index=0, offset=known.log_start)
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsRequest.Topic(name="a", partitions=[part])], timeout_ms=1000
        )
        (row,) = client.ask(request).topics[0].partitions
        assert (row.error_code, row.low_watermark) == (ErrorCode.NONE, known.log_start)

    def finish(self, client: WireClient) -> None:
        """Replace the batches of the compacted topic by what compaction left of them, and check that it is enough."""
        known = self._ledger.partitions[COMPACTED, 0]
        end, offset, left = known.end, 0, []
        while offset < end:
            row = fetch(client, COMPACTED, offset)
            content = bytes(row.records or b"")
            assert row.error_code == ErrorCode.NONE
            assert content, f"{COMPACTED} ends at {offset} instead of {end}"
            for position, header in batches(content):
                left.append(batch_of(content[position : position + header.size_bytes]))
                offset = header.next_offset
        known.batches = left
        found = {r.key: r.value for batch in left for r in decode_records(batch.content)}
        assert found == self._ledger.latest, "compaction lost the last value of a key"


def batch_of(content: bytes) -> Batch:
    header = parse_header(content)
    times = tuple((record.offset, record.timestamp) for record in decode_records(content))
    return Batch(header.base_offset, header.last_offset, content, times)
