"""The runner drives any core: it appends before it replies, keeps one timer, and stops at the first failure."""

from __future__ import annotations

from typing import Any

import pytest

from broker.cores.core import Effects, Reply, RequestContext
from broker.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from broker.protocol.wire_types import Message
from broker.server.exchange import Exchange
from broker.server.flush import Flusher
from broker.server.runner import LATE_MS, Runner
from broker.server.session import ANONYMOUS, Session
from broker.storage import StorageError
from tests.harness.simulation.clock import MS, SECOND, BrokerLoop, Clock

START_MS = SECOND // MS


class ParkingCore:
    """A core that parks each request for as many ms as its generation says, and persists the group id of each."""

    def __init__(self) -> None:
        self.parked: dict[int, int] = {}  # ticket -> when to answer
        self.contexts: list[RequestContext] = []
        self.advanced_at_ms: list[int] = []
        self.fails = False

    def apply(self, state_record: str, /) -> None:
        raise AssertionError("the runner does not apply state records")

    def resume(self, now_ms: int, wall_ms: int) -> Effects[str, str]:
        return Effects([], [], None)

    def handle(self, request: Any, context: RequestContext, now_ms: int) -> Effects[str, str]:
        assert not self.fails, "broken invariant"
        self.contexts.append(context)
        self.parked[context.ticket] = now_ms + request.generation_id
        return self._answer([request.group_id], now_ms)

    def advance(self, now_ms: int, wall_ms: int) -> Effects[str, str]:
        self.advanced_at_ms.append(now_ms)
        return self._answer([], now_ms)

    def _answer(self, state_records: list[str], now_ms: int) -> Effects[str, str]:
        due = [ticket for ticket, at_ms in self.parked.items() if at_ms <= now_ms]
        for ticket in due:
            del self.parked[ticket]
        replies = [Reply(ticket, HeartbeatResponse()) for ticket in due]
        return Effects(state_records, replies, min(self.parked.values(), default=None))


class World:
    """A runner with its core, a simulated loop, and a journal of what happens in which order."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.loop: Any = BrokerLoop(self.clock)
        self.journal: list[str] = []
        self.dirty = False
        self.fails = False
        self.core = ParkingCore()
        self.flusher = Flusher(
            self,
            self.loop,
            flushed=lambda: None,
            wake=lambda: None,
            failed=lambda cause: self.journal.append(f"failed: {cause}"),
        )
        self.runner = Runner(self.core, self.append, self.flusher, self.loop, lambda: 7)
        self.client_host = "/127.0.0.1"
        listener: Any = None
        self.session = Session(listener, authenticated=True)
        self.exchanges: list[Exchange] = []

    def append(self, effects: Effects[str, str]) -> None:
        for record in effects.state_records:
            self.journal.append(f"append {record}")
            self.dirty = True
            self.flusher.schedule()

    def flush(self) -> None:
        if self.fails:
            raise StorageError("disk full")
        self.journal.append("flush")
        self.dirty = False

    def submit(self, name: str, park_ms: int = 0) -> Exchange:
        connection: Any = self
        exchange = Exchange(connection, HeartbeatRequest.API_KEY, 3, len(self.exchanges), name)
        self.exchanges.append(exchange)
        self.runner.submit(HeartbeatRequest(group_id=name, generation_id=park_ms, member_id=""), exchange)
        return exchange

    def answered(self, exchange: Exchange, response: Message) -> None:
        self.journal.append(f"answer {exchange.client_id}")
        self.flusher.release(exchange)

    def released(self) -> None:
        sent = [exchange.client_id for exchange in self.exchanges if exchange.released]
        self.journal.append(f"send {sent}")

    def run_until(self, ms: int) -> None:
        while (next_us := self.loop.next_turn_us()) is not None and next_us <= ms * MS:
            self.clock.us = max(self.clock.us, next_us)
            self.loop.turn()
        self.clock.us = ms * MS


def test_a_reply_is_sent_after_the_flush_of_the_state_records_before_it() -> None:
    world = World()
    world.submit("a")
    world.submit("b")
    assert world.journal == ["append a", "answer a", "append b", "answer b"]
    world.run_until(START_MS)
    assert world.journal[4:] == ["flush", "send ['a', 'b']"]


def test_a_parked_request_is_answered_by_the_step_that_its_deadline_starts() -> None:
    world = World()
    late, early = world.submit("late", 50), world.submit("early", 20)
    world.run_until(START_MS + 19)
    assert not any(exchange.answered for exchange in world.exchanges)
    world.run_until(START_MS + 21)
    assert early.answered
    assert not late.answered
    world.run_until(START_MS + 100)
    assert late.answered
    assert len(world.core.advanced_at_ms) == 2


def test_the_core_learns_who_asks() -> None:
    world = World()
    world.submit("a")
    assert world.core.contexts == [RequestContext(1, 3, "a", "/127.0.0.1", ANONYMOUS, 7)]


def test_a_request_of_a_disconnected_client_gets_no_answer() -> None:
    world = World()
    exchange = world.submit("a", 20)
    assert len(world.runner) == 1
    assert exchange.abandon is not None
    exchange.abandon()
    assert len(world.runner) == 0
    world.run_until(START_MS + 100)
    assert not exchange.answered


def test_requests_that_arrived_during_a_suspension_run_before_late_timers() -> None:
    world = World()
    world.submit("a", 20)
    world.run_until(START_MS)
    world.loop.stop((LATE_MS + 50) * MS)
    world.loop.deliver(world.submit, "b")
    world.run_until(START_MS + LATE_MS + 60)
    assert world.journal.index("append b") < world.journal.index("answer a")


def test_a_failed_flush_ends_all_answers_and_steps() -> None:
    world = World()
    world.submit("a")
    world.submit("parked", 10)
    world.fails = True
    world.run_until(START_MS + 100)
    world.submit("later")
    assert world.journal == ["append a", "answer a", "append parked", "failed: disk full"]
    assert str(world.flusher.failure) == "disk full"
    assert not any(exchange.released for exchange in world.exchanges)


def test_a_core_that_fails_ends_all_answers_and_steps() -> None:
    world = World()
    world.submit("a")
    world.core.fails = True
    with pytest.raises(AssertionError, match="broken invariant"):
        world.submit("b")
    world.core.fails = False
    world.submit("c")
    world.run_until(START_MS + 100)
    assert [line for line in world.journal if line.startswith(("flush", "send", "append c"))] == []
    assert world.flusher.failure is not None
