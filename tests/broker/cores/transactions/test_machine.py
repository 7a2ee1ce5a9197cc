"""A stateful machine: producers begin, end, retry and fence each other, markers come late, and the broker restarts.

A producer is whatever learned a producer id and epoch; it may use them long after a newer one has taken over.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from broker.cores.transactions.records import TransactionRecord, TransactionTombstone, to_row
from broker.cores.transactions.settings import TransactionSettings
from broker.cores.transactions.states import TransactionState
from broker.cores.transactions.step import Markers
from broker.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from broker.protocol.messages.end_txn import EndTxnRequest
from broker.protocol.messages.init_producer_id import InitProducerIdRequest
from tests.broker.cores.transactions.world import World

IDS = st.sampled_from(["s", "t"])
PARTITIONS = st.lists(st.tuples(st.just("orders"), st.integers(0, 3)), min_size=1, max_size=3)
MAX_EPOCH = 2**15 - 1
# What may follow each state, and None for an id that is not stored.
NEXT = {
    None: {TransactionState.EMPTY},
    TransactionState.EMPTY: {TransactionState.EMPTY, TransactionState.ONGOING, TransactionState.PREPARE_ABORT},
    TransactionState.ONGOING: {
        TransactionState.ONGOING,
        TransactionState.PREPARE_COMMIT,
        TransactionState.PREPARE_ABORT,
    },
    TransactionState.PREPARE_COMMIT: {TransactionState.COMPLETE_COMMIT},
    TransactionState.PREPARE_ABORT: {TransactionState.COMPLETE_ABORT},
    TransactionState.COMPLETE_COMMIT: {
        TransactionState.EMPTY,
        TransactionState.ONGOING,
        TransactionState.PREPARE_ABORT,
    },
    TransactionState.COMPLETE_ABORT: {TransactionState.EMPTY, TransactionState.ONGOING, TransactionState.PREPARE_ABORT},
}

Producer = tuple[str, int, int]  # transactional id, producer id, epoch


class TransactionMachine(RuleBasedStateMachine):
    producers = Bundle("producers")

    @initialize(level=st.sampled_from([0, 1, 2]), epoch=st.sampled_from([-1, 0, MAX_EPOCH - 3, MAX_EPOCH - 2]))
    def start(self, level: int, epoch: int) -> None:
        self.world = World(TransactionSettings(60_000, 600_000, 60_000), level)
        self.judged = 0
        self.last: dict[str, TransactionRecord] = {}
        self.newest: dict[str, tuple[int, int]] = {}  # the newest that a client was given, by transactional id
        if epoch >= 0:
            for transactional_id in ("s", "t"):
                self._start_at(transactional_id, epoch)

    def _start_at(self, transactional_id: str, epoch: int) -> None:
        """Bring a transactional id near the end of its epochs."""
        self.world.ask(InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=1_000), 5)
        old = replace(self._record(transactional_id), producer_epoch=epoch)
        row = to_row(old, self.world.level)
        assert row.value is not None
        self.world.rows[row.key] = row.value, row.timestamp_ms
        self.world.start()
        self.judged = len(self.world.records)
        self.last[transactional_id] = old

    # ---- clients ---------------------------------------------------------------------------------------------------------

    @rule(target=producers, transactional_id=IDS, timeout=st.sampled_from([1_000, 10_000]), version=st.integers(0, 5))
    def initialize_producer(self, transactional_id: str, timeout: int, version: int) -> Any:
        request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=timeout)
        return self._given(transactional_id, self.world.ask(request, version), fences=True)

    @rule(target=producers, producer=producers, version=st.integers(3, 5))
    def recover(self, producer: Producer, version: int) -> Any:
        transactional_id, producer_id, epoch = producer
        if producer_id == -1:
            return producer
        request = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=10_000,
            producer_id=producer_id,
            producer_epoch=epoch,
        )
        return self._given(transactional_id, self.world.ask(request, version), fences=False)

    @rule(producer=producers, partitions=PARTITIONS, adds=st.booleans())
    def produce(self, producer: Producer, partitions: list[tuple[str, int]], adds: bool) -> None:
        transactional_id, producer_id, epoch = producer
        errors = self.world.verify(transactional_id, producer_id, epoch, dict.fromkeys(partitions), add=adds)
        for partition, error in errors.items():
            if not error:
                self._is_present(producer)
                record = self._record(transactional_id)
                assert record.state is TransactionState.ONGOING
                assert partition in record.partitions

    @rule(producer=producers, group=st.sampled_from(["g", "h"]), version=st.integers(0, 4))
    def add_offsets(self, producer: Producer, group: str, version: int) -> None:
        transactional_id, producer_id, epoch = producer
        request = AddOffsetsToTxnRequest(
            transactional_id=transactional_id, producer_id=producer_id, producer_epoch=epoch, group_id=group
        )
        if not self.world.ask(request, version).error_code:
            self._is_present(producer)
            assert self._record(transactional_id).state is TransactionState.ONGOING

    @rule(target=producers, producer=producers, commits=st.booleans(), version=st.integers(0, 5))
    def end(self, producer: Producer, commits: bool, version: int) -> Any:
        transactional_id, producer_id, epoch = producer
        before = self.world.core.transaction(transactional_id)
        request = EndTxnRequest(
            transactional_id=transactional_id, producer_id=producer_id, producer_epoch=epoch, committed=commits
        )
        response = self.world.ask(request, version)
        if response.error_code:
            assert before == self.world.core.transaction(transactional_id)
            return producer
        decided = (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)
        assert (self._record(transactional_id).state in decided) is commits
        if version < 5:
            self._is_present(producer)
            return producer
        assert before is not None
        rotated = (producer_id, before.producer_epoch) == (before.previous_producer_id, 0)
        assert before.producer_epoch - epoch in (0, 1) or rotated, (
            "only the latest transaction is ended, or ended again"
        )
        return self._given(transactional_id, response, fences=False)

    # ---- the broker ------------------------------------------------------------------------------------------------------

    @rule(ms=st.sampled_from([1, 900, 1_000, 9_000, 700_000]))
    def let_pass(self, ms: int) -> None:
        self.world.let_pass(ms)

    @rule(holds=st.booleans())
    def markers_are_slow(self, holds: bool) -> None:
        self.world.holds_markers = holds

    @rule()
    def write_markers(self) -> None:
        for transactional_id in list(self.world.held):
            self.world.write_markers(transactional_id)

    @rule()
    def restart(self) -> None:
        before = {record.transactional_id: record for record in self.world.core.transactions()}
        prepared = {name for name, record in before.items() if record.state.is_prepared}
        replayed = {record.transactional_id: record for record in self.world.new_core().transactions()}
        assert self._stored(replayed) == self._stored(before), "what the log holds is what the core knows"
        self.world.holds_markers = True
        self.world.start()
        assert self.world.held.keys() == prepared, "a start names the markers that are still to be written"
        if self.world.level == 0:
            self.last = {name: record for name, record in replayed.items() if name in self.last}

    # ---- invariants ------------------------------------------------------------------------------------------------------

    @invariant()
    def every_change_of_state_is_allowed(self) -> None:
        for record in self.world.records[self.judged :]:
            before = self.last.get(record.transactional_id)
            if isinstance(record, TransactionTombstone):
                assert before is not None
                assert before.state.is_idle
                del self.last[record.transactional_id]
                self.newest.pop(record.transactional_id, None)
                continue
            assert record.state in NEXT[before.state if before is not None else None]
            assert record.producer_epoch >= 0
            assert record.update_timestamp_ms >= (before.update_timestamp_ms if before is not None else 0)
            if before is not None:
                self._judge_epochs(before, record)
            if record.state is TransactionState.ONGOING:
                assert before is not None
                assert set(record.partitions) >= set(before.partitions)
            if record.state.is_idle:
                assert not record.partitions
            self.last[record.transactional_id] = record
        self.judged = len(self.world.records)

    @invariant()
    def exactly_the_ongoing_transactions_have_a_deadline(self) -> None:
        ongoing = {
            record.transactional_id
            for record in self.world.core.transactions()
            if record.state is TransactionState.ONGOING
        }
        timed = {key[1] for key in self.world.core.deadlines() if key[0] == "timeout"}
        assert ongoing == timed

    @invariant()
    def exactly_the_prepared_transactions_wait_for_markers(self) -> None:
        markers = {
            record.transactional_id: Markers(
                record.transactional_id,
                record.producer_id,
                record.producer_epoch,
                0,
                record.state is TransactionState.PREPARE_COMMIT,
                record.partitions,
            )
            for record in self.world.core.transactions()
            if record.state.is_prepared
        }
        assert markers == self.world.held

    # ---- helpers ---------------------------------------------------------------------------------------------------------

    def _given(self, transactional_id: str, response: Any, *, fences: bool) -> Producer:
        """The producer after an answer with an id and epoch. It is never an older one than a client has been given."""
        if response.error_code:
            assert (response.producer_id, response.producer_epoch) == (-1, -1)
            return transactional_id, -1, -1
        given = response.producer_id, response.producer_epoch
        assert given[1] < MAX_EPOCH, "the last epoch is for fencing only"
        newest = self.newest.get(transactional_id, (-1, -1))
        assert given > newest if fences else given >= newest
        self.newest[transactional_id] = given
        return transactional_id, *given

    def _is_present(self, producer: Producer) -> None:
        transactional_id, producer_id, epoch = producer
        record = self._record(transactional_id)
        assert (producer_id, epoch) == (record.producer_id, record.producer_epoch), "only the present producer succeeds"
        assert (producer_id, epoch) >= self.newest.get(transactional_id, (-1, -1)), "a fenced epoch never succeeds"

    def _judge_epochs(self, before: TransactionRecord, record: TransactionRecord) -> None:
        if record.producer_id == before.producer_id:
            assert record.producer_epoch - before.producer_epoch in (0, 1)
            return
        assert record.producer_id > before.producer_id, "a producer id is never used again"
        assert record.producer_epoch == 0
        assert before.producer_epoch >= MAX_EPOCH - 1

    def _record(self, transactional_id: str) -> TransactionRecord:
        record = self.world.core.transaction(transactional_id)
        assert record is not None
        return record

    def _stored(self, records: dict[str, TransactionRecord]) -> dict[str, Any]:
        """What level 0 of transaction.version stores of them, or all."""
        if self.world.level:
            return dict(records)
        return {
            name: replace(record, previous_producer_id=-1, next_producer_id=-1, client_transaction_version=0)
            for name, record in records.items()
        }


TestTransactionMachine = TransactionMachine.TestCase
TestTransactionMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


@pytest.mark.soak
@pytest.mark.timeout(1_200)
class TestTransactionMachineForLonger(TestTransactionMachine):  # type: ignore[misc, valid-type]
    settings = settings(max_examples=1_000, stateful_step_count=100, deadline=None)
