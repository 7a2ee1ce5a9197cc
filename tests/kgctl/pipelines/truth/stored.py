"""Logs as their leaders store them, with control records, aborted and open transactions, and the sizes of batches."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from broker.protocol.messages.fetch import FetchRequest
from broker.protocol.messages.metadata import MetadataRequest
from broker.protocol.record_batch import BatchHeader, Record, batches, decode_records
from tests.harness.wire_client import WireClient

Place = tuple[str, int]
_TYPE_BYTES = 2
_COMMIT = 1


@dataclass(frozen=True)
class Batch:
    """A batch of a log; `marker` of a control batch is whether it commits."""

    header: BatchHeader
    records: list[Record]
    marker: bool | None = None

    @property
    def first(self) -> int:
        return self.header.base_offset

    @property
    def size(self) -> int:
        return self.header.size_bytes


@dataclass
class Log:
    """The batches of a partition in their order; those that are deleted later stay known."""

    batches: list[Batch] = field(default_factory=list)

    @property
    def end(self) -> int:
        return self.batches[-1].header.next_offset if self.batches else 0

    @property
    def size(self) -> int:
        return sum(batch.size for batch in self.batches)

    def before(self, offset: int) -> Log:
        return Log([batch for batch in self.batches if batch.first < offset])

    def records(self) -> Iterator[Record]:
        """All of them, control records too."""
        for batch in self.batches:
            yield from batch.records

    def transactions(self) -> tuple[set[int], dict[int, int]]:
        """The first offsets of aborted batches, and by producer the first offset of its open transaction."""
        aborted: set[int] = set()
        pending: dict[int, list[int]] = {}
        for batch in self.batches:
            producer = batch.header.producer_id
            if batch.marker is not None:
                ended = pending.pop(producer, [])
                aborted.update(() if batch.marker else ended)
            elif batch.header.is_transactional:
                pending.setdefault(producer, []).append(batch.first)
        return aborted, {producer: firsts[0] for producer, firsts in pending.items()}

    @property
    def last_stable(self) -> int:
        return min(self.transactions()[1].values(), default=self.end)

    def end_at(self, at_ms: int, end: int) -> int:
        """The offset of the first record of at least this time, of those before `end`; else `end`."""
        return next((one.offset for one in self.records() if one.timestamp >= at_ms and one.offset < end), end)

    def time_of(self, offset: int) -> int | None:
        """The time of the first record at or after the offset."""
        found = [one for batch in self.batches if batch.header.next_offset > offset for one in batch.records]
        place = bisect_left([one.offset for one in found], offset)
        return found[place].timestamp if place < len(found) else None


@dataclass
class Stored:
    """All logs of a cluster. Each reading adds what is new."""

    bootstrap: str
    logs: dict[Place, Log] = field(default_factory=dict)

    def read(self) -> None:
        host, port = self.bootstrap.split(":")
        with WireClient((host, int(port)), timeout_s=60) as client:
            for topic in client.ask(MetadataRequest(topics=None, allow_auto_topic_creation=False), 9).topics:
                for row in topic.partitions:
                    self.logs.setdefault((topic.name, row.partition_index), Log())
            while self._read_more(client):
                pass

    def _read_more(self, client: WireClient) -> bool:
        topics: dict[str, list[FetchRequest.Partition]] = {}
        for (topic, part), log in self.logs.items():
            asked = FetchRequest.Partition(partition=part, fetch_offset=log.end, partition_max_bytes=1 << 20)
            topics.setdefault(topic, []).append(asked)
        wanted = [FetchRequest.Topic(topic=topic, partitions=parts) for topic, parts in topics.items()]
        request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 30, topics=wanted)
        found = False
        for answer in client.ask(request, 12).responses:
            for row in answer.partitions:
                assert row.error_code == 0, (answer.topic, row.partition_index, row.error_code)
                more = [*_read(bytes(row.records or b""))]
                self.logs[answer.topic, row.partition_index].batches += more
                found = found or bool(more)
        return found

    def of_topic(self, topic: str) -> dict[int, Log]:
        return {part: log for (name, part), log in self.logs.items() if name == topic}


def _read(content: bytes) -> Iterable[Batch]:
    for position, header in batches(content, partial_tail=True):
        records = decode_records(content, position)
        marker = None
        if header.is_control:
            assert records[0].key is not None
            marker = int.from_bytes(records[0].key[_TYPE_BYTES:], "big") == _COMMIT
        yield Batch(header, records, marker)
