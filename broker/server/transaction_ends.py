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

# What the end of one transaction may take in one turn of the event loop: time, and partitions to write, each of which takes a sync.
# A producer waits longer for its next transaction if its end needs a second turn, so the ends of a turn together may take more.
SLICE_S, SLICE_PARTITIONS = 0.005, 50
TURN_S, TURN_PARTITIONS = 0.02, 100
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
        self.unwritable: dict[tuple[str, int], Exception] = {}  # since the last retry
        self.reported: set[tuple[str, int]] = set()  # as unwritable, in the log

    @property
    def has_more(self) -> bool:
        """Whether there is something to write now."""
        return bool(self.partitions or self.offsets)


class _Turn:
    """What the ends have taken of one turn of the event loop."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.partitions: set[tuple[str, int]] = set()

    @property
    def is_over(self) -> bool:
        return self.seconds >= TURN_S or len(self.partitions) >= TURN_PARTITIONS


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
        self._turn = _Turn()
        self._next: asyncio.Handle | None = None
        self._retry: asyncio.TimerHandle | None = None

    def __contains__(self, producer_id: int) -> bool:
        """Whether markers of this producer are still to be written."""
        return producer_id in self._producer_ids

    def add(self, markers: Markers) -> None:
        """Write these markers: the first in `begin`, or soon in a later turn of the event loop."""
        self._new.append(_End(markers))
        self._producer_ids[markers.producer_id] += 1
        self._continue()

    def begin(self) -> None:
        """Write the first markers of what was added: of most transactions all, so that one flush makes them durable."""
        while self._new and not self._turn.is_over:
            self._run(self._new.popleft())

    def complete(self) -> None:
        """Write everything, however long it takes, except to partitions that cannot be written now."""
        while (waiting := self._new or self._unfinished) and self._flusher.failure is None:
            self._turn = _Turn()
            self._run(waiting.popleft())

    def stop(self) -> None:
        self._new.clear()
        self._unfinished.clear()
        for timer in (self._next, self._retry):
            if timer is not None:
                timer.cancel()

    def _continue(self) -> None:
        if self._next is None:
            self._next = self._loop.call_soon(self._begin_turn)

    def _begin_turn(self) -> None:
        self._next = None
        self._turn = _Turn()
        if self._unfinished:
            self._run(self._unfinished.popleft())
        self.begin()
        if self._unfinished or self._new:
            self._continue()

    def _run(self, end: _End) -> None:
        """Write markers of one transaction for a few milliseconds, and something in any case: a machine may be slow."""
        if self._flusher.failure is not None:
            return
        time, turn, left = self._loop.time, self._turn, SLICE_PARTITIONS
        began, taken_before = time(), turn.seconds
        try:
            while end.has_more:
                self._write_next(end)
                left -= 1
                took = time() - began
                turn.seconds = taken_before + took
                if took >= SLICE_S or not left or turn.is_over:
                    break
        except StorageError as error:
            self._flusher.fail(error)
            return
        except Exception as error:
            self._flusher.fail(error)
            raise
        if end.has_more:
            self._unfinished.append(end)
            self._continue()
        elif end.unwritable:
            self._block(end)
        else:
            self._end(end)

    def _write_next(self, end: _End) -> None:
        """Write to the next partition, or some of the pending offsets."""
        if end.partitions:
            place = end.partitions.popleft()
            self._turn.partitions.add(place)
            try:
                self._write_marker(end, *place)
            except (OutOfDescriptors, DamageError) as error:
                end.unwritable[place] = error
            return
        marker = end.marker
        is_more = self._groups.end_transaction(
            marker.producer_id, marker.producer_epoch, end.offsets, is_commit=marker.is_commit, limit=OFFSETS_AT_ONCE
        )
        if not is_more:
            end.offsets.clear()

    def _write_marker(self, end: _End, topic: str, index: int) -> None:
        log = self._log.partition(topic, index)
        if log is None:
            return
        found = append_marker(log, end.marker, self._wall_ms())
        if isinstance(found, ErrorCode):
            refused = "%s-%d refused the end of transaction %r: %s"
            logger.warning(refused, topic, index, end.transactional_id, found.name)
        else:
            self._waiters.moved(topic, index)

    def _end(self, end: _End) -> None:
        producer_id = end.marker.producer_id
        self._producer_ids[producer_id] -= 1
        if not self._producer_ids[producer_id]:
            del self._producer_ids[producer_id]
        self._flusher.schedule()
        self._ended(end.transactional_id)

    def _block(self, end: _End) -> None:
        """Try what could not be written again, after a while."""
        if end.unwritable.keys() != end.reported:
            end.reported = set(end.unwritable)
            error = next(iter(end.unwritable.values()))
            logger.error(
                "the end of transaction %r waits for %d partitions: %s", end.transactional_id, len(end.reported), error
            )
        end.partitions.extend(end.unwritable)
        end.unwritable.clear()
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
