"""A worker: it consumes input, produces two records for each, and commits its offsets in the same transaction."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from broker.protocol.errors import ErrorCode as E
from broker.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from broker.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from broker.protocol.messages.end_txn import EndTxnRequest
from broker.protocol.messages.init_producer_id import InitProducerIdRequest
from broker.protocol.messages.offset_fetch import OffsetFetchRequest
from broker.protocol.messages.produce import ProduceRequest
from broker.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from broker.protocol.record_batch import Record, build_batch
from tests.harness.simulation.clock import MS, SECOND
from tests.harness.simulation.transactions.membership import Membership, Outdated
from tests.harness.simulation.transactions.scripts import Answering, Script, Sleep, until_answered

if TYPE_CHECKING:
    from tests.harness.simulation.transactions.world import World

GROUP, INPUT, OUTPUT = "app", "input", "output"
RETRIABLE = {
    E.CONCURRENT_TRANSACTIONS,
    E.COORDINATOR_LOAD_IN_PROGRESS,
    E.COORDINATOR_NOT_AVAILABLE,
    E.NOT_COORDINATOR,
    E.NOT_ENOUGH_REPLICAS,
    E.UNSTABLE_OFFSET_COMMIT,
}
FENCED = {E.INVALID_PRODUCER_EPOCH, E.PRODUCER_FENCED, E.INVALID_PRODUCER_ID_MAPPING}
GROUP_ERRORS = {E.UNKNOWN_MEMBER_ID, E.ILLEGAL_GENERATION, E.REBALANCE_IN_PROGRESS, E.FENCED_INSTANCE_ID}
GIVEN_UP_AFTER = 200


class Fenced(Exception):
    """Another producer has the transactional id, or the transaction has timed out."""


class Failed(Exception):
    """The transaction must be aborted."""


class Worker:
    """One process. Workers may share a transactional id: then each start of one fences the other.

    A worker without membership has fixed partitions, and commits offsets without a generation.
    """

    def __init__(
        self, world: World, name: str, transactional_id: str, membership: Membership | None, partitions: list[int]
    ) -> None:
        self.name = name
        self.transactional_id = transactional_id
        self._world = world
        self._membership = membership
        self._fixed = partitions
        self._timeout_ms = world.random.choice([6_000, 20_000, 60_000])
        self._producer = (-1, -1)
        self._sequences: dict[int, int] = {}
        self.committed = 0
        self.stopping = False
        self._level = world.level

    @property
    def is_member(self) -> bool:
        return self._membership is not None

    @property
    def has_work(self) -> bool:
        return self.is_member or bool(self._fixed)

    # ---- the script --------------------------------------------------------------------------------------------------

    def script(self) -> Script:
        world = self._world
        self._producer = (-1, -1)
        if self._membership is not None:
            self._membership.forget()
        while not self.stopping:
            self._level = world.level
            try:
                yield from self._initialize()
                yield from self._work()
            except Fenced:
                self._producer = (-1, -1)
                yield Sleep(world.random.randrange(world.random.choice([SECOND, 20 * SECOND])))

    def _work(self) -> Script:
        positions: dict[int, int] = {}
        while not self.stopping:
            try:
                positions = positions or (yield from self._positions())
                if not positions:
                    yield Sleep(500 * MS)
                    continue
                if self._membership is not None:
                    yield from self._membership.heartbeat()
                self._level = self._world.level
                is_commit = not self._world.happens(self._world.faults.abort)
                positions = yield from self._transaction(positions, is_commit)
            except Outdated:
                positions = {}
                yield from self._abort()
            except Failed:
                positions = {}
                yield from self._abort()
                # Which sequences were appended is unknown (KIP-360).
                yield from self._initialize()

    def _initialize(self) -> Script:
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self._timeout_ms,
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
        )
        answer = yield from self._ask(request, 5 if self._level == 2 else 4, lambda answer: [answer.error_code])
        self._producer = (answer.producer_id, answer.producer_epoch)
        self._sequences.clear()

    def _positions(self) -> Answering:
        partitions = self._fixed
        if self._membership is not None:
            partitions = yield from self._membership.join()
        if not partitions:
            return {}
        topic = OffsetFetchRequest.Topic(name=INPUT, partition_indexes=partitions)
        if self._world.happens(0.5):
            request = OffsetFetchRequest(group_id=GROUP, topics=[topic], require_stable=True)
            version, rows = 7, lambda answer: answer.topics[0].partitions
        else:
            group = OffsetFetchRequest.Group(group_id=GROUP, topics=[topic])
            request = OffsetFetchRequest(groups=[group], require_stable=True)
            version, rows = 8, lambda answer: answer.groups[0].topics[0].partitions
        answer = yield from self._ask(request, version, lambda answer: [row.error_code for row in rows(answer)])
        return {row.partition_index: max(0, row.committed_offset) for row in rows(answer)}

    def _transaction(self, positions: dict[int, int], is_commit: bool) -> Answering:
        random = self._world.random
        taken = {p: positions[p] + random.randrange(3) for p in positions}
        inputs = [(p, offset) for p, end in taken.items() for offset in range(positions[p], end)]
        if not inputs:
            yield Sleep(50 * MS)
            return positions
        outputs: dict[int, list[bytes]] = {}
        for partition, offset in inputs:
            for copy in range(2):
                place = (offset + copy) % self._world.outputs
                outputs.setdefault(place, []).append(f"{partition}:{offset}:{copy}".encode())
        steps = [self._produce(place, values) for place, values in outputs.items()]
        steps.insert(random.randrange(len(steps) + 1), self._commit_offsets({p: taken[p] for p in positions}))
        for step in steps:
            yield from step
            if self._world.happens(self._world.faults.think):
                yield Sleep(random.randrange(random.choice([SECOND, 8 * SECOND])))
        if self.is_member and self._world.happens(self._world.faults.think):
            # The group may evict the worker while its offsets are pending.
            yield Sleep(random.randrange(20 * SECOND))
        yield from self._end(is_commit)
        if not is_commit:
            return {}
        self.committed += 1
        self._world.judge.acknowledged(inputs)
        return taken

    def _produce(self, place: int, values: list[bytes]) -> Script:
        world, (producer_id, epoch) = self._world, self._producer
        implicit = self._level == 2
        if not implicit:
            yield from self._ask(self._add_partition(place), 3, _codes_of_partitions)
        sequence = self._sequences.get(place, 0)
        records = [Record(n, world.wall_ms(), None, value) for n, value in enumerate(values)]
        batch = build_batch(
            records, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, is_transactional=True
        )
        rows = [ProduceRequest.Partition(index=place, records=batch)]
        request = ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=1_000,
            topic_data=[ProduceRequest.Topic(name=OUTPUT, partition_data=rows)],
        )
        version = 12 if implicit else world.random.randrange(9, 12)
        yield from self._ask(request, version, lambda answer: [answer.responses[0].partition_responses[0].error_code])
        self._sequences[place] = sequence + len(values)

    def _add_partition(self, place: int) -> AddPartitionsToTxnRequest:
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self._producer[0],
            v3_and_below_producer_epoch=self._producer[1],
            v3_and_below_topics=[AddPartitionsToTxnRequest.Topic(name=OUTPUT, partitions=[place])],
        )

    def _commit_offsets(self, offsets: dict[int, int]) -> Script:
        producer_id, epoch = self._producer
        implicit = self._level == 2
        if not implicit:
            add = AddOffsetsToTxnRequest(
                transactional_id=self.transactional_id, producer_id=producer_id, producer_epoch=epoch, group_id=GROUP
            )
            yield from self._ask(add, 3, lambda answer: [answer.error_code])
        member = self._membership
        rows = [
            TxnOffsetCommitRequest.Partition(partition_index=p, committed_offset=offset, committed_metadata="")
            for p, offset in offsets.items()
        ]
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=GROUP,
            producer_id=producer_id,
            producer_epoch=epoch,
            generation_id=member.generation if member is not None else -1,
            member_id=member.member_id if member is not None else "",
            topics=[TxnOffsetCommitRequest.Topic(name=INPUT, partitions=rows)],
        )
        version = 5 if implicit else self._world.random.choice([3, 4])
        yield from self._ask(request, version, lambda answer: [row.error_code for row in answer.topics[0].partitions])

    def _abort(self) -> Script:
        # A transaction that has not begun, or is over, cannot be aborted.
        with suppress(Failed):
            yield from self._end(False)

    def _end(self, is_commit: bool) -> Script:
        producer_id, epoch = self._producer
        request = EndTxnRequest(
            transactional_id=self.transactional_id, producer_id=producer_id, producer_epoch=epoch, committed=is_commit
        )
        version = 5 if self._level == 2 else 4
        answer = yield from self._ask(request, version, lambda answer: [answer.error_code])
        if version >= 5 and (answer.producer_id, answer.producer_epoch) != self._producer:
            self._producer = (answer.producer_id, answer.producer_epoch)
            self._sequences.clear()

    def _ask(self, request: Any, version: int, codes_of: Any) -> Answering:
        """An answer without errors; Fenced, Outdated or Failed otherwise."""
        for _ in range(GIVEN_UP_AFTER):
            answer = yield from until_answered(request, version)
            codes = {code for code in codes_of(answer) if code not in (E.NONE, E.DUPLICATE_SEQUENCE_NUMBER)}
            self._world.judge.note_codes(type(request).__name__, codes)
            if not codes:
                return answer
            if codes & FENCED:
                raise Fenced
            if codes & GROUP_ERRORS:
                raise Outdated
            if not codes & RETRIABLE:
                raise Failed
            yield Sleep(self._world.random.randrange(20 * MS, 200 * MS))
        raise Failed


def _codes_of_partitions(answer: Any) -> list[int]:
    rows = answer.results_by_topic_v3_and_below
    return [row.partition_error_code for topic in rows for row in topic.results_by_partition]
