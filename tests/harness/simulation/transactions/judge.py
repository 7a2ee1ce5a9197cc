"""The judge of a transactional world: it derives from the stored batches what committed, and compares everybody with that.

It looks for the anomalies that Jepsen names in its tests of Kafka: aborted reads, lost and duplicated writes, dirty writes, reads
that are not atomic across partitions, offsets that moved without their output, and transactions that never end.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from broker.cores.groups.records import OffsetCommitRecord, from_row
from broker.cores.transactions.states import TransactionState
from broker.protocol.control_records import read_marker
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.end_txn import EndTxnRequest
from broker.protocol.messages.init_producer_id import InitProducerIdRequest
from broker.protocol.messages.produce import ProduceRequest
from broker.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from broker.protocol.record_batch import batches, decode_records
from broker.protocol.wire_types import Message
from broker.server.exchange import Exchange
from broker.storage import OFFSETS_TOPIC
from tests.harness.simulation.terms import ensure
from tests.harness.simulation.transactions.worker import GROUP, OUTPUT

if TYPE_CHECKING:
    from tests.harness.simulation.transactions.broker import Broker
    from tests.harness.simulation.transactions.reader import Passage
    from tests.harness.simulation.transactions.world import World

COMMITTED, ABORTED, OPEN = "committed", "aborted", "open"


class Batch(NamedTuple):
    """A batch of one producer, with what became of its transaction."""

    first_offset: int
    producer: tuple[int, int]
    values: dict[int, bytes]
    fate: str


class Judge:
    def __init__(self, world: World) -> None:
        self._world = world
        self._newest: dict[
            str, tuple[int, int]
        ] = {}  # producer id and epoch that InitProducerId gave last, by transactional id
        self._acknowledged_newest: dict[str, tuple[int, int]] = {}
        self._requests: dict[Exchange, Any] = {}
        self._given: dict[Exchange, tuple[str, tuple[int, int]]] = {}
        self._inputs: set[tuple[int, int]] = set()  # whose transactions were acknowledged as committed
        self.commits = 0
        self.codes: Counter[tuple[str, int]] = Counter()

    # ---- what clients learn ------------------------------------------------------------------------------------------

    def acknowledged(self, inputs: list[tuple[int, int]]) -> None:
        """A worker knows that the transaction with the output for these records has committed."""
        again = self._inputs & set(inputs)
        ensure(not again, f"the transactions of two workers committed the output for {sorted(again)[:3]}")
        self._inputs.update(inputs)
        self.commits += 1

    def note_codes(self, request: str, codes: set[int]) -> None:
        for code in codes:
            self.codes[request, code] += 1

    # ---- the broker --------------------------------------------------------------------------------------------------

    def arrived(self, exchange: Exchange, request: Message) -> None:
        self._requests[exchange] = request

    def answered(self, exchange: Exchange, response: Any) -> None:
        request = self._requests.pop(exchange, None)
        if isinstance(request, InitProducerIdRequest) and not response.error_code and request.transactional_id:
            given = request.transactional_id, (response.producer_id, response.producer_epoch)
            self._newest[given[0]] = given[1]
            self._given[exchange] = given
        elif isinstance(request, EndTxnRequest):
            self._check_fenced(request, (request.producer_id, request.producer_epoch), [response.error_code])
        elif isinstance(request, TxnOffsetCommitRequest):
            codes = [row.error_code for topic in response.topics for row in topic.partitions]
            self._check_fenced(request, (request.producer_id, request.producer_epoch), codes)
        elif isinstance(request, ProduceRequest) and request.transactional_id is not None:
            records = request.topic_data[0].partition_data[0].records
            _, header = next(iter(batches(records)))  # type: ignore[arg-type]
            code = response.responses[0].partition_responses[0].error_code
            self._check_fenced(request, (header.producer_id, header.producer_epoch), [code])

    def released(self, exchange: Exchange) -> None:
        given = self._given.pop(exchange, None)
        if given is not None:
            self._acknowledged_newest[given[0]] = given[1]

    def _check_fenced(self, request: Any, producer: tuple[int, int], codes: list[int]) -> None:
        newest = self._newest.get(request.transactional_id)
        if newest is not None and producer[0] == newest[0] and producer[1] < newest[1]:
            ensure(
                all(code not in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER) for code in codes),
                f"{type(request).__name__} of the fenced producer {producer} succeeds after {newest}",
            )

    def restarted(self) -> None:
        """What no client has learned may be lost in the crash."""
        self._newest = dict(self._acknowledged_newest)
        self._requests.clear()
        self._given.clear()

    # ---- the state ---------------------------------------------------------------------------------------------------

    def audit(self, broker: Broker) -> None:
        """Every open transaction is known to the coordinator. For moments between two turns."""
        known = self._known(broker)
        for index in range(self._world.outputs):
            log = broker.log.partition(OUTPUT, index)
            assert log is not None
            for state in log.producer_states():
                if state.current_txn_start_offset >= 0:
                    where = (state.producer_id, OUTPUT, index)
                    ensure(where in known, f"the coordinator does not know of an open transaction: {where}")
        for row in broker.log.pending_offsets.all():
            where = (row.producer_id, OFFSETS_TOPIC, broker.groups.partition_of(row.group_id))
            ensure(where in known, f"the coordinator does not know whose offset is pending: {where}")

    def _known(self, broker: Broker) -> set[tuple[int, str, int]]:
        if broker.transactions is None:
            return set()
        return {
            (record.producer_id, *partition)
            for record in broker.transactions.coordinator.transactions()
            if record.state is TransactionState.ONGOING or record.state.is_prepared
            for partition in record.partitions
        }

    def check(self, broker: Broker) -> None:
        """Exactly the output of the input below the committed offsets is committed, once. For moments when nothing is about to end."""
        if broker.transactions is not None:
            prepared = [r for r in broker.transactions.coordinator.transactions() if r.state.is_prepared]
            ensure(not prepared, f"transactions are left half ended: {prepared}")
        self.audit(broker)
        scans = {index: self._scan(broker, index) for index in range(self._world.outputs)}
        found = Counter(
            value
            for batches_ in scans.values()
            for batch in batches_
            if batch.fate is COMMITTED
            for value in batch.values.values()
        )
        offsets = committed_offsets(broker)
        expected = {
            f"{partition}:{offset}:{copy}".encode()
            for partition, end in offsets.items()
            for offset in range(end)
            for copy in range(2)
        }
        twice = [value for value, count in found.items() if count > 1]
        ensure(not twice, f"committed twice: {twice[:3]}")
        ensure(
            not expected - found.keys(), f"offsets moved without their output: {sorted(expected - found.keys())[:3]}"
        )
        ensure(not found.keys() - expected, f"output without its offsets: {sorted(found.keys() - expected)[:3]}")
        lost = [(p, offset) for p, offset in self._inputs if offset >= offsets.get(p, 0)]
        ensure(not lost, f"acknowledged commits are lost: {sorted(lost)[:3]}")

    def check_passages(self, broker: Broker, passages: list[Passage]) -> None:
        """Readers have delivered exactly what is there, wherever they started."""
        scans = {index: self._scan(broker, index) for index in range(self._world.outputs)}
        for passage in passages:
            expected = {
                offset: value
                for batch in scans[passage.partition]
                if batch.fate is COMMITTED or not passage.is_committed
                for offset, value in batch.values.items()
                if passage.start <= offset < passage.end
            }
            kind = "read_committed" if passage.is_committed else "read_uncommitted"
            what = f"a {kind} reader of {passage.partition} from {passage.start} to {passage.end}"
            surplus = {at for at, value in passage.delivered.items() if expected.get(at) != value}
            ensure(not surplus, f"{what} has delivered what is not committed: {sorted(surplus)[:5]}")
            missed = expected.keys() - passage.delivered.keys()
            ensure(not missed, f"{what} has missed {sorted(missed)[:5]}")

    def _scan(self, broker: Broker, index: int) -> list[Batch]:
        """All batches of an output partition with their fates, which the log's own views must agree with."""
        log = broker.log.partition(OUTPUT, index)
        assert log is not None
        content, offset = [], 0
        while offset < log.high_watermark:
            part = log.read(offset, 1 << 20, at_least_one=True)
            assert part is not None
            data = part if isinstance(part, bytes) else part.tobytes()
            for position, header in batches(data):
                if header.base_offset >= offset:
                    marker = read_marker(data, position) if header.is_control else None
                    values = {} if marker else {r.offset: r.value or b"" for r in decode_records(data, position)}
                    content.append((header, marker, values))
            offset = content[-1][0].next_offset
        fates: dict[int, str] = {}  # of the transaction that a producer has open, read backwards
        out: list[Batch] = []
        first: dict[int, int] = {}
        for header, marker, values in reversed(content):
            if marker is not None:
                fates[header.producer_id] = COMMITTED if marker.is_commit else ABORTED
            else:
                fate = fates.get(header.producer_id, OPEN)
                out.append(Batch(header.base_offset, (header.producer_id, header.producer_epoch), values, fate))
                if fate is OPEN:
                    first[header.producer_id] = header.base_offset
        stable = min(first.values(), default=log.high_watermark)
        ensure(log.last_stable_offset == stable, f"the LSO of {index} is {log.last_stable_offset} instead of {stable}")
        return out[::-1]


def committed_offsets(broker: Broker) -> dict[int, int]:
    """The stored offsets of the group."""
    rows = [from_row(row.key, row.value, row.timestamp_ms) for row in broker.log.groups.offset_rows(GROUP)]
    return {row.partition: row.offset for row in rows if isinstance(row, OffsetCommitRecord)}
