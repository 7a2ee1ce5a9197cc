"""TransactionEnds: writes the markers of ended transactions to the partitions and to the groups core.

A transaction may have ten thousand partitions and a hundred thousand pending offsets. What is left after a few milliseconds is written
in later turns of the event loop; meanwhile the coordinator lets nothing new into the transaction.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from broker.protocol.control_records import Marker
from broker.protocol.errors import ErrorCode
from broker.storage import OFFSETS_TOPIC, DamageError, OutOfDescriptors, StorageError

if TYPE_CHECKING:
    import asyncio

    from broker.cores.transactions.step import Markers
    from broker.server.fetch_waiters import FetchWaiters
    from broker.server.flush import Flusher
    from broker.server.group_runner import GroupRunner
    from broker.storage import Appended, Log, PartitionLog

# How long the work may take in one turn of the event loop, and how many partitions it may write: each takes a sync.
TURN_S = 0.005
PARTITIONS_AT_ONCE = 50
# Pending offsets per slice.
OFFSETS_AT_ONCE = 200
# How soon to try a partition again that could not be written.
RETRY_S = 1.0

logger = logging.getLogger("broker.server")


class _End:
    """The end of one transaction, and what of it is not written yet."""

    def __init__(self, markers: Markers) -> None:
        self.transactional_id = markers.transactional_id
        self.marker = Marker(markers.producer_id, markers.producer_epoch, markers.coordinator_epoch, markers.is_commit)
        self.partitions = deque(found for found in markers.partitions if found[0] != OFFSETS_TOPIC)
        self.offsets = {index for topic, index in markers.partitions if topic == OFFSETS_TOPIC}


class TransactionEnds:
    def __init__(
        self,
        log: Log,
        groups: GroupRunner,
        waiters: FetchWaiters,
        flusher: Flusher,
        loop: asyncio.AbstractEventLoop,
        wall_ms: Callable[[], int],
        ended: Callable[[str], None],
    ) -> None:
        """`ended` is called with a transactional id after its last marker."""
        self._log = log
        self._groups = groups
        self._waiters = waiters
        self._flusher = flusher
        self._loop = loop
        self._wall_ms = wall_ms
        self._ended = ended
        self._new: deque[_End] = deque()
        self._unfinished: deque[_End] = deque()
        self._blocked: list[_End] = []
        self._producer_ids: Counter[int] = Counter()
        self._turn: asyncio.Handle | None = None
        self._retry: asyncio.TimerHandle | None = None

    def __contains__(self, producer_id: int) -> bool:
        """Whether markers of this producer are still to be written."""
        return producer_id in self._producer_ids

    def add(self, markers: Markers) -> None:
        """Write these markers: the first in `begin`, at the latest in the next turn of the event loop."""
        self._new.append(_End(markers))
        self._producer_ids[markers.producer_id] += 1
        self._continue()

    def begin(self) -> None:
        """Write the first markers of what was added: of most transactions all, so that one flush makes them durable."""
        while self._new:
            self._run(self._new.popleft())

    def complete(self) -> None:
        """Write everything, however long it takes, except to partitions that cannot be written now."""
        self.begin()
        while self._unfinished and self._flusher.failure is None:
            self._run(self._unfinished.popleft())
            self.begin()

    def stop(self) -> None:
        self._new.clear()
        self._unfinished.clear()
        for timer in (self._turn, self._retry):
            if timer is not None:
                timer.cancel()

    def _continue(self) -> None:
        if self._turn is None:
            self._turn = self._loop.call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._turn = None
        self.begin()
        if self._unfinished:
            self._run(self._unfinished.popleft())
        if self._unfinished:
            self._continue()

    def _run(self, end: _End) -> None:
        """Write markers of one transaction for a few milliseconds."""
        if self._flusher.failure is not None:
            return
        until, left = self._loop.time() + TURN_S, PARTITIONS_AT_ONCE
        try:
            while self._write_next(end):
                left -= 1
                if not left or self._loop.time() >= until:
                    self._unfinished.append(end)
                    self._continue()
                    return
        except (OutOfDescriptors, DamageError) as error:
            self._block(end, error)
            return
        except StorageError as error:
            self._flusher.fail(error)
            return
        except Exception as error:
            self._flusher.fail(error)
            raise
        self._end(end)

    def _write_next(self, end: _End) -> bool:
        """Write to the next partition, or some of the pending offsets. False if everything is written."""
        if end.partitions:
            topic, index = end.partitions[0]
            log = self._log.partition(topic, index)
            if log is not None:
                found = append_marker(log, end.marker, self._wall_ms())
                if isinstance(found, ErrorCode):
                    logger.warning(
                        "%s-%d refused the end of transaction %r: %s", topic, index, end.transactional_id, found.name
                    )
                else:
                    self._waiters.moved(topic, index)
            end.partitions.popleft()
            return True
        if end.offsets:
            marker = end.marker
            is_more = self._groups.end_transaction(
                marker.producer_id,
                marker.producer_epoch,
                end.offsets,
                is_commit=marker.is_commit,
                limit=OFFSETS_AT_ONCE,
            )
            if not is_more:
                end.offsets.clear()
            return True
        return False

    def _end(self, end: _End) -> None:
        producer_id = end.marker.producer_id
        self._producer_ids[producer_id] -= 1
        if not self._producer_ids[producer_id]:
            del self._producer_ids[producer_id]
        self._flusher.schedule()
        self._ended(end.transactional_id)

    def _block(self, end: _End, error: Exception) -> None:
        logger.error("the end of transaction %r waits: %s", end.transactional_id, error)
        self._blocked.append(end)
        if self._retry is None:
            self._retry = self._loop.call_later(RETRY_S, self._unblock)

    def _unblock(self) -> None:
        self._retry = None
        self._unfinished.extend(self._blocked)
        self._blocked.clear()
        self._continue()


def append_marker(log: PartitionLog, marker: Marker, wall_ms: int) -> Appended | ErrorCode:
    """Append a marker of this broker, which is the only coordinator: markers that an administrator wrote do not fence it."""
    found = log.append_marker(marker, wall_ms=wall_ms)
    if found is not ErrorCode.TRANSACTION_COORDINATOR_FENCED:
        return found
    (epoch,) = (state.coordinator_epoch for state in log.producer_states() if state.producer_id == marker.producer_id)
    return log.append_marker(marker._replace(coordinator_epoch=epoch), wall_ms=wall_ms)
