"""A reader of the output: it filters aborted transactions as clients do, and remembers what it delivered."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from broker.protocol.control_records import read_marker
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.fetch import FetchRequest
from broker.protocol.record_batch import batches, check_crc, decode_records
from tests.harness.simulation.terms import ensure
from tests.harness.simulation.transactions.scripts import Script, Sleep, until_answered
from tests.harness.simulation.transactions.worker import OUTPUT

if TYPE_CHECKING:
    from tests.harness.simulation.transactions.world import World


@dataclass
class Passage:
    """What a reader delivered of one partition, from `start` until it stopped before `end`."""

    partition: int
    start: int
    end: int
    is_committed: bool
    delivered: dict[int, bytes] = field(default_factory=dict)


class Reader:
    def __init__(self, world: World, name: str, *, is_committed: bool) -> None:
        self.name = name
        self._world = world
        self._is_committed = is_committed
        self._reading = [self._begin(index, 0) for index in range(world.outputs)]
        self.passages: list[Passage] = list(self._reading)

    def _begin(self, partition: int, start: int) -> Passage:
        return Passage(partition, start, start, self._is_committed)

    def script(self) -> Script:
        random = self._world.random
        while True:
            answer = yield from until_answered(self._request(), 11)
            for row in answer.responses[0].partitions:
                self._take(self._reading[row.partition_index], row)
            if random.random() < 0.02:
                # Start again from anywhere.
                index = random.randrange(len(self._reading))
                passage = self._begin(index, random.randrange(self._reading[index].end + 1))
                self._reading[index] = passage
                self.passages.append(passage)
            yield Sleep(random.randrange(self._world.reading_us))

    def _request(self) -> FetchRequest:
        rows = [
            FetchRequest.Partition(
                partition=passage.partition,
                fetch_offset=passage.end,
                partition_max_bytes=self._world.random.choice([1, 300, 100_000]),
            )
            for passage in self._reading
        ]
        return FetchRequest(
            max_wait_ms=self._world.random.choice([0, 500, 5_000]),
            min_bytes=1,
            isolation_level=int(self._is_committed),
            topics=[FetchRequest.Topic(topic=OUTPUT, partitions=rows)],
        )

    def _take(self, passage: Passage, row: Any) -> None:
        what = f"{self.name} at {passage.end} of {passage.partition}"
        ensure(row.error_code == ErrorCode.NONE, f"{what}: error {row.error_code}")
        ensure(
            not self._is_committed or row.last_stable_offset <= row.high_watermark,
            f"{what}: an LSO above the high watermark",
        )
        begun = sorted((aborted.first_offset, aborted.producer_id) for aborted in row.aborted_transactions or ())
        aborted: set[int] = set()
        for position, header in batches(row.records or b"", partial_tail=True):
            ensure(check_crc(row.records, position, header), f"{what}: a damaged batch")
            while begun and begun[0][0] <= header.last_offset:
                aborted.add(begun.pop(0)[1])
            if header.is_control:
                marker = read_marker(row.records, position)
                if marker is not None and not marker.is_commit:
                    aborted.discard(header.producer_id)
            elif not (self._is_committed and header.is_transactional and header.producer_id in aborted):
                for record in decode_records(row.records, position):
                    if record.offset >= passage.end:
                        passage.delivered[record.offset] = record.value or b""
            passage.end = max(passage.end, header.next_offset)
        if self._is_committed:
            ensure(passage.end <= row.last_stable_offset or not row.records, f"{what}: read beyond the LSO")
