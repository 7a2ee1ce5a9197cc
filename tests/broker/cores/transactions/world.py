"""A transaction coordinator with a simulated clock, a log to restart from, and somebody who writes its markers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from broker.cores.core import RequestContext
from broker.cores.transactions.coordinator import TransactionCoordinator
from broker.cores.transactions.records import Partition, StateRecord, from_row, to_row
from broker.cores.transactions.settings import TransactionSettings
from broker.cores.transactions.step import Markers, TransactionEffects
from broker.protocol.codec import decode, encode
from broker.protocol.errors import ErrorCode
from broker.protocol.offsets_topic import partition_for
from broker.protocol.wire_types import Message

WALL_MS = 1_000_000_000_000
DEFAULTS = TransactionSettings()


@dataclass
class World:
    settings: TransactionSettings = DEFAULTS
    level: int = 2  # of transaction.version
    holds_markers: bool = False  # markers are written only by `write_markers`
    now_ms: int = 0
    wall_offset_ms: int = 0  # how far the wall clock was put forward
    producer_ids: int = 0
    rows: dict[bytes, tuple[bytes, int]] = field(default_factory=dict)  # the compacted log
    records: list[StateRecord] = field(default_factory=list)  # every one emitted
    held: dict[str, Markers] = field(default_factory=dict)  # markers to write, by transactional id
    written: list[Markers] = field(default_factory=list)
    answers: dict[int, Any] = field(default_factory=dict)  # ticket -> response
    tickets: int = 0
    wake_at: int | None = None

    def __post_init__(self) -> None:
        self.start()

    @property
    def wall_ms(self) -> int:
        return WALL_MS + self.now_ms + self.wall_offset_ms

    # ---- life cycle --------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start a new core from the log."""
        self.held.clear()
        self.core = self.new_core()
        self.take(self.core.resume(self.now_ms, self.wall_ms))

    def new_core(self) -> TransactionCoordinator:
        """A core with what the log holds, before it resumes."""
        core = TransactionCoordinator(self.settings, self._new_producer_id, lambda: self.level, partition_for)
        for key, (value, timestamp_ms) in self.rows.items():
            record = from_row(key, value, timestamp_ms)
            assert record is not None
            core.apply(record)
        return core

    def take(self, effects: TransactionEffects) -> None:
        """Perform the effects of a step."""
        for record in effects.state_records:
            self.records.append(record)
            row = to_row(record, self.level)
            if row.value is None:
                self.rows.pop(row.key, None)
            else:
                self.rows[row.key] = row.value, row.timestamp_ms
        for reply in effects.replies:
            assert reply.ticket == self.tickets, "a request is answered in its step"
            assert reply.ticket not in self.answers, f"{reply.ticket} is answered twice"
            self.answers[reply.ticket] = reply.response
        self.wake_at = effects.wake_at_ms
        for markers in effects.markers:
            self.held[markers.transactional_id] = markers
            if not self.holds_markers:
                self.write_markers(markers.transactional_id)

    def write_markers(self, transactional_id: str) -> None:
        self.written.append(self.held.pop(transactional_id))
        self.take(self.core.markers_written(transactional_id, self.now_ms, self.wall_ms))

    def let_pass(self, ms: int) -> None:
        """Advance the clock and wake the core at its deadlines."""
        until_ms = self.now_ms + ms
        while self.wake_at is not None and self.wake_at <= until_ms:
            self.now_ms = max(self.now_ms, self.wake_at)
            self.take(self.core.advance(self.now_ms, self.wall_ms))
        self.now_ms = until_ms

    # ---- requests ----------------------------------------------------------------------------------------------------

    def ask(self, request: Message, version: int) -> Any:
        """Send a request and return the answer as the client reads it."""
        self.tickets += 1
        request = decode(type(request), encode(request, version), version)
        context = RequestContext(self.tickets, version, "c", "/127.0.0.1", "User:ANONYMOUS", self.wall_ms)
        self.take(self.core.handle(request, context, self.now_ms))
        response = self.answers[self.tickets]
        return decode(type(response), encode(response, version), version)

    def verify(
        self, transactional_id: str, producer_id: int, epoch: int, verified: Collection[Partition], *, add: bool
    ) -> dict[Partition, ErrorCode]:
        effects, errors = self.core.verify(
            transactional_id, producer_id, epoch, verified, add=add, now_ms=self.now_ms, wall_ms=self.wall_ms
        )
        self.take(effects)
        return errors

    def _new_producer_id(self) -> int:
        self.producer_ids += 1
        return self.producer_ids - 1
