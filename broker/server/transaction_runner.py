"""TransactionRunner: what is specific to the transactions core around its runner.

Its state records become rows of `__transaction_state`. `transaction_ends.py` writes the markers that its effects name.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from broker.cores.transactions.coordinator import TransactionCoordinator
from broker.cores.transactions.records import from_row, to_row
from broker.cores.transactions.states import TransactionState
from broker.protocol.control_records import Marker
from broker.protocol.errors import ErrorCode
from broker.server.features import TRANSACTION_VERSION, level_of
from broker.server.runner import Runner
from broker.server.transaction_ends import TransactionEnds, append_marker
from broker.storage import OFFSETS_TOPIC, TRANSACTIONS_TOPIC

if TYPE_CHECKING:
    import asyncio

    from broker.config.config import BrokerConfig
    from broker.cores.transactions.records import StateRecord
    from broker.cores.transactions.step import TransactionEffects
    from broker.protocol.wire_types import Message
    from broker.server.exchange import Answerable
    from broker.server.fetch_waiters import FetchWaiters
    from broker.server.flush import Flusher
    from broker.server.group_runner import GroupRunner
    from broker.storage import Log, TopicRow

TopicPartition = tuple[str, int]

logger = logging.getLogger("broker.server")


def start(
    config: BrokerConfig,
    log: Log,
    groups: GroupRunner,
    flusher: Flusher,
    waiters: FetchWaiters,
    loop: asyncio.AbstractEventLoop,
    wall_ms: Callable[[], int],
) -> TransactionRunner:
    """Start the coordinator of transactions with what is stored."""
    # The groups core loads it at its first use: here, while a failure ends no step.
    import_module("broker.cores.groups.transactional_offsets")

    def transaction_version() -> int:
        return level_of(log, TRANSACTION_VERSION)

    coordinator = TransactionCoordinator(
        config.transaction_settings(), log.next_producer_id, transaction_version, groups.partition_of
    )
    runner = TransactionRunner(coordinator, log, groups, flusher, waiters, loop, wall_ms, transaction_version)
    runner.recover()
    return runner


class TransactionRunner:
    """Runs the transactions core over the log and the groups core."""

    def __init__(
        self,
        coordinator: TransactionCoordinator,
        log: Log,
        groups: GroupRunner,
        flusher: Flusher,
        waiters: FetchWaiters,
        loop: asyncio.AbstractEventLoop,
        wall_ms: Callable[[], int],
        transaction_version: Callable[[], int],
    ) -> None:
        self.coordinator = coordinator
        self._log = log
        self._groups = groups
        self._flusher = flusher
        self._waiters = waiters
        self._wall_ms = wall_ms
        self._runner = Runner(coordinator, self._append, flusher, loop, wall_ms)
        self._ends = TransactionEnds(log, groups, waiters, flusher, loop, wall_ms, self._ended)
        self._transaction_version = transaction_version
        self._partitions = log.topics[TRANSACTIONS_TOPIC].partition_count

    def recover(self) -> None:
        """Apply the stored hard state to the core, start it, and complete the transactions that were about to end."""
        apply = self.coordinator.apply
        for record in _records(self._log.transactions.newest_rows()):
            apply(record)
        self._runner.resume()
        self._abort_unknown()
        self._ends.complete()

    def submit(self, request: Message, exchange: Answerable) -> None:
        """Run one request as a step of the core, and write the first markers of what it ends."""
        self._runner.submit(request, exchange)
        self._ends.begin()

    def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
        *,
        add: bool,
    ) -> Mapping[TopicPartition, ErrorCode]:
        """The errors of the partitions that are not part of this producer's transaction. `add`: make them part of it."""
        errors: dict[TopicPartition, ErrorCode] = {}

        def run() -> TransactionEffects:
            effects, found = self.coordinator.verify(
                transactional_id,
                producer_id,
                producer_epoch,
                partitions,
                add=add,
                now_ms=self._runner.now_ms,
                wall_ms=self._wall_ms(),
            )
            errors.update((key, code) for key, code in found.items() if code)
            return effects

        self._runner.step(run)
        self._ends.begin()
        return errors

    def is_ending(self, producer_id: int) -> bool:
        """Whether markers of this producer are still to be written."""
        return producer_id in self._ends

    def stop(self) -> None:
        """Run no further step by timer. The next start completes what is about to end."""
        self._runner.stop()
        self._ends.stop()

    def _append(self, effects: TransactionEffects) -> None:
        for markers in effects.markers:
            self._ends.add(markers)
        if not effects.state_records:
            return
        rows = [to_row(record, self._transaction_version(), self._partitions) for record in effects.state_records]
        self._log.append_rows(TRANSACTIONS_TOPIC, rows)
        for row in rows:
            self._waiters.moved(TRANSACTIONS_TOPIC, row.partition)
        self._flusher.schedule()

    def _ended(self, transactional_id: str) -> None:
        """All markers of a transaction are written."""
        self._runner.step(self.coordinator.markers_written, transactional_id, self._runner.now_ms, self._wall_ms())

    def _abort_unknown(self) -> None:
        """Abort what is open in partitions and groups but not known to the coordinator, as after a loss: it would never end."""
        known = {
            (record.producer_id, *partition): record.producer_epoch
            for record in self.coordinator.transactions()
            if record.state is TransactionState.ONGOING or record.state.is_prepared
            for partition in record.partitions
        }
        for topic, index, producer_id, producer_epoch in list(self._log.open_transactions()):
            log = self._log.partition(topic, index)
            # After a loss, the coordinator may know an earlier transaction of the producer.
            is_known = producer_epoch <= known.get((producer_id, topic, index), -1)
            if not is_known and log is not None:
                append_marker(log, Marker(producer_id, producer_epoch, 0, False), self._wall_ms())
                logger.warning("%s-%d: aborted a transaction of the unknown producer %d", topic, index, producer_id)
        unknown: dict[tuple[int, int], set[int]] = {}
        for row in self._log.pending_offsets.all():
            index = self._groups.partition_of(row.group_id)
            if (row.producer_id, OFFSETS_TOPIC, index) not in known:
                unknown.setdefault((row.producer_id, row.producer_epoch), set()).add(index)
        for (producer_id, producer_epoch), indexes in unknown.items():
            logger.warning("dropped the pending offsets of the unknown producer %d", producer_id)
            while self._groups.end_transaction(producer_id, producer_epoch, indexes, is_commit=False):
                pass


def _records(rows: Iterable[TopicRow]) -> Iterator[StateRecord]:
    for row in rows:
        record = from_row(row.key, row.value, row.timestamp_ms)
        if record is not None:
            yield record
