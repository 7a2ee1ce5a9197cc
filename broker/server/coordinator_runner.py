"""The shell around the coordinator core: requests in, effects out in order, one timer.

Records of a step are appended before anything else happens; the commit round that follows makes them durable and
then releases the replies, and every later reply too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import count
from typing import TYPE_CHECKING

from broker.cores.core import Effects, RequestContext
from broker.cores.groups.events import to_json
from broker.cores.groups.records import GenerationFloor, from_row, to_row
from broker.cores.groups.step import GroupEffects
from broker.server.group_lines import log_events
from broker.storage import EVENTS_TOPIC, OFFSETS_TOPIC, EventRow

if TYPE_CHECKING:
    import asyncio

    from broker.api.groups import GroupApi
    from broker.cores.groups.coordinator import Coordinator
    from broker.cores.groups.events import GroupEvent
    from broker.cores.groups.records import StateRecord
    from broker.protocol.wire_types import Message
    from broker.server.commit_rounds import CommitRounds
    from broker.server.exchange import Waiting
    from broker.server.fetch_waiters import FetchWaiters
    from broker.storage import Log, OffsetsRow

# Nobody is authenticated.
ANONYMOUS = "User:ANONYMOUS"
# How long the look for expired offsets may hold up requests at a time, and how long it then rests.
EXPIRY_TURN_S, EXPIRY_REST_S = 0.005, 0.01
# A timer that fires this late met a stopped process; what clients sent meanwhile is read before anyone is expired.
LATE_MS = 1000


class CoordinatorRunner:
    """Owns the tickets: each stands for an exchange whose answer the core has not given yet."""

    def __init__(
        self,
        coordinator: Coordinator,
        api: GroupApi,
        log: Log,
        rounds: CommitRounds,
        waiters: FetchWaiters,
        loop: asyncio.AbstractEventLoop,
        wall_ms: Callable[[], int],
        expiry_interval_ms: int,
    ) -> None:
        self._coordinator = coordinator
        self._api = api
        self._log = log
        self._rounds = rounds
        self._waiters = waiters
        self._loop = loop
        self._wall_ms = wall_ms
        self._partitions = log.topics[OFFSETS_TOPIC].partition_count
        self._expiry_interval_s = expiry_interval_ms / 1000
        self._expiry_timer: asyncio.TimerHandle | None = None
        self._tickets: dict[int, Waiting] = {}
        self._next_ticket = count(1)
        self._timer: asyncio.TimerHandle | None = None
        self._wake_at_ms: int | None = None
        self._postponed = False

    def recover(self) -> None:
        """Give the core its hard state and let it go on from there."""
        apply = self._coordinator.apply
        for record in _records(self._log.group_metadata_rows()):
            apply(record)
        for group_id, generation in self._log.generation_floors().items():
            apply(GenerationFloor(group_id, generation))
        self._coordinator.expect_offsets(self._log.groups_with_offsets())
        self._perform(self._coordinator.resume(self._now_ms(), self._wall_ms()))
        self._expiry_timer = self._loop.call_later(self._expiry_interval_s, self._start_expiry)

    def submit(self, request: Message, exchange: Waiting) -> None:
        """Run one step. Its answer, if it comes later, finds the exchange by its ticket."""
        ticket = next(self._next_ticket)
        context = RequestContext(
            ticket=ticket,
            api_version=exchange.version,
            client_id=exchange.client_id or "",
            client_host=exchange.connection.client_host,
            principal=ANONYMOUS,
            wall_ms=self._wall_ms(),
        )
        self._tickets[ticket] = exchange
        self._step(self._handle, request, context)
        if not exchange.answered:
            exchange.abandon = lambda: self._abandon(ticket)

    def topic_deleted(self, topic: str) -> None:
        """Drop the offsets that groups have committed for a topic that is gone."""
        self._step(self._forget_topic, topic)

    def stop(self) -> None:
        """No step is begun by a timer after this."""
        for timer in (self._timer, self._expiry_timer):
            if timer is not None:
                timer.cancel()
        self._timer = self._expiry_timer = None

    def _handle(self, request: Message, context: RequestContext) -> GroupEffects:
        self._load(self._api.groups_to_load(request))
        return self._api.handle(request, context, self._now_ms())

    def _forget_topic(self, topic: str) -> GroupEffects:
        self._load(self._log.groups_with_offsets_of(topic))
        return self._api.topic_deleted(topic, self._now_ms(), self._wall_ms())

    def _load(self, group_ids: Iterable[str]) -> None:
        for group_id in group_ids:
            if self._coordinator.needs_load(group_id):
                self._coordinator.load(group_id, _records(self._log.offset_rows(group_id)))

    def _abandon(self, ticket: int) -> None:
        self._tickets.pop(ticket, None)

    def _step(self, run: Callable[..., GroupEffects], *arguments: object) -> None:
        if self._rounds.failed:
            return
        try:
            effects = run(*arguments)
            self._perform(effects)
        except Exception as error:
            # The core may have changed and the log not: going on could tell clients what is not there after a restart.
            self._rounds.stop(error)
            raise

    def _perform(self, effects: GroupEffects) -> None:
        if effects.state_records:
            self._append(effects.state_records)
        if effects.events:
            self._append_events(effects.events)
        for reply in effects.replies:
            exchange = self._tickets.pop(reply.ticket, None)
            if exchange is not None:
                exchange.answer(reply.response)
        self._wake_at(effects.wake_at_ms)

    def _append(self, records: list[StateRecord]) -> None:
        rows = []
        for record in records:
            if isinstance(record, GenerationFloor):
                self._log.set_generation_floor(record.group_id, record.generation)
            else:
                rows.append(to_row(record, self._partitions))
        if rows:
            self._log.append_offsets_rows(rows)
            for row in rows:
                self._waiters.moved(OFFSETS_TOPIC, row.partition)
        self._rounds.schedule()

    def _append_events(self, events: list[GroupEvent]) -> None:
        rows = [EventRow(event.group_id.encode(), to_json(event), event.wall_ms) for event in events]
        self._log.append_group_events(rows)
        log_events(events)
        self._waiters.moved(EVENTS_TOPIC, 0)
        self._rounds.schedule()

    def _now_ms(self) -> int:
        return int(self._loop.time() * 1000)

    def _wake_at(self, wake_at_ms: int | None) -> None:
        """Set the timer. One that is set too early stays: nearly every heartbeat moves the deadline a little."""
        self._wake_at_ms = wake_at_ms
        if wake_at_ms is None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            return
        # One more, or rounding down could wake the core before its deadline.
        wake_at = (wake_at_ms + 1) / 1000
        if self._timer is not None:
            if self._timer.when() <= wake_at:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(wake_at, self._advance)

    def _advance(self) -> None:
        self._timer = None
        now_ms, due_ms = self._now_ms(), self._wake_at_ms
        was_postponed, self._postponed = self._postponed, False
        if due_ms is None:
            return
        if now_ms < due_ms:
            self._wake_at(due_ms)
        elif now_ms - due_ms > LATE_MS and not was_postponed:
            self._postponed = True
            self._timer = self._loop.call_later(0, self._advance)
        else:
            self._step(self._coordinator.advance, now_ms, self._wall_ms())

    def _start_expiry(self) -> None:
        self._expire(self._coordinator.unloaded_groups())

    def _expire(self, group_ids: list[str]) -> None:
        """Let the offsets of groups that lie in the store alone expire, a few groups at a time."""
        until = self._loop.time() + EXPIRY_TURN_S
        while group_ids and self._loop.time() < until:
            self._step(self._expire_group, group_ids.pop())
        if group_ids:
            self._expiry_timer = self._loop.call_later(EXPIRY_REST_S, self._expire, group_ids)
        else:
            self._expiry_timer = self._loop.call_later(self._expiry_interval_s, self._start_expiry)

    def _expire_group(self, group_id: str) -> GroupEffects:
        now_ms = self._now_ms()
        if not self._coordinator.needs_load(group_id):
            return Effects([], [], self._coordinator.wake_at())
        records = _records(self._log.offset_rows(group_id))
        return self._coordinator.expire_unloaded(group_id, records, now_ms, self._wall_ms())


def _records(rows: Iterable[OffsetsRow]) -> Iterator[StateRecord]:
    for row in rows:
        record = from_row(row.key, row.value, row.timestamp_ms)
        if record is not None:
            yield record
