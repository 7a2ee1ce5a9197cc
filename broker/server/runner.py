"""Runner: drives one core in the event loop. Requests go in; effects are performed in order; one timer.

The state records of a step are appended before anything else happens. The flush that follows makes them durable and then
releases the replies, and every later reply too.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from broker.cores.core import RequestContext
from broker.server.exchange import completed
from broker.server.gradual import Turns, encoded

if TYPE_CHECKING:
    import asyncio

    from broker.cores.core import Core, Effects
    from broker.protocol.wire_types import Message
    from broker.server.exchange import Answerable
    from broker.server.flush import Flusher

RecordT = TypeVar("RecordT")
EventT = TypeVar("EventT")

# A timer this late means that the process was stopped: read what clients sent meanwhile before any session expires.
LATE_MS = 1000


class Runner(Generic[RecordT, EventT]):
    """Owns the tickets of a core: each stands for a request that the core has not answered yet."""

    def __init__(
        self,
        core: Core[RecordT, EventT],
        append: Callable[[Any], None],
        flusher: Flusher,
        loop: asyncio.AbstractEventLoop,
        wall_ms: Callable[[], int],
    ) -> None:
        """`append` writes whatever the effects of a step make durable to the log; it need not flush."""
        self._core = core
        self._append = append
        self._flusher = flusher
        self._loop = loop
        self._wall_ms = wall_ms
        self._tickets: dict[int, Answerable] = {}
        self._next_ticket = count(1)
        self._timer: asyncio.TimerHandle | None = None
        self._wake_at_ms: int | None = None
        self._postponed = False

    def __len__(self) -> int:
        """How many requests wait for an answer of the core."""
        return len(self._tickets)

    @property
    def now_ms(self) -> int:
        return int(self._loop.time() * 1000)

    @property
    def has_failed(self) -> bool:
        """Whether no further step runs."""
        return self._flusher.failure is not None

    def resume(self) -> None:
        """Start the core, after its last stored state record."""
        self._perform(self._core.resume(self.now_ms, self._wall_ms()))

    def submit(self, request: Message, exchange: Answerable) -> None:
        """Run one request as a step. If a later step answers it, the ticket finds the exchange."""
        if self._flusher.failure is not None:
            return
        ticket = next(self._next_ticket)
        connection = exchange.connection
        context = RequestContext(
            ticket=ticket,
            api_version=exchange.version,
            client_id=exchange.client_id or "",
            client_host=connection.client_host,
            principal=connection.session.principal,
            wall_ms=self._wall_ms(),
        )
        self._tickets[ticket] = exchange
        try:
            self._perform(self._core.handle(request, context, self.now_ms))
        except Exception as error:
            self._flusher.fail(error)
            raise
        if ticket in self._tickets:
            exchange.abandon = lambda: self._abandon(ticket)

    def step(self, run: Callable[..., Effects[RecordT, EventT]], *arguments: object) -> None:
        """Run any other step of the core and perform its effects.

        A failed step is final: the core may have changed without the log, and further answers could report what a restart
        does not find.
        """
        if self._flusher.failure is not None:
            return
        try:
            self._perform(run(*arguments))
        except Exception as error:
            self._flusher.fail(error)
            raise

    def stop(self) -> None:
        """Run no further step by timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _abandon(self, ticket: int) -> None:
        self._tickets.pop(ticket, None)

    def _perform(self, effects: Effects[RecordT, EventT]) -> None:
        self._append(effects)
        for reply in effects.replies:
            exchange = self._tickets.pop(reply.ticket, None)
            if exchange is None:
                continue
            if reply.is_gradual:
                Turns(exchange, encoded(completed(exchange, reply.response), exchange.version)).resume()
            else:
                exchange.answer(reply.response)
        for ticket in effects.unanswered:
            exchange = self._tickets.pop(ticket, None)
            if exchange is not None:
                exchange.abandon = None
        self._wake_at(effects.wake_at_ms)

    def _wake_at(self, wake_at_ms: int | None) -> None:
        """Set the timer. A timer that is too early stays: nearly every heartbeat moves the deadline a little."""
        self._wake_at_ms = wake_at_ms
        if wake_at_ms is None:
            self.stop()
            return
        # One millisecond more, or rounding down could wake the core before its deadline.
        wake_at = (wake_at_ms + 1) / 1000
        if self._timer is not None:
            if self._timer.when() <= wake_at:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(wake_at, self._advance)

    def _advance(self) -> None:
        self._timer = None
        now_ms, due_ms = self.now_ms, self._wake_at_ms
        was_postponed, self._postponed = self._postponed, False
        if due_ms is None:
            return
        if now_ms < due_ms:
            self._wake_at(due_ms)
        elif now_ms - due_ms > LATE_MS and not was_postponed:
            self._postponed = True
            self._timer = self._loop.call_later(0, self._advance)
        else:
            self.step(self._core.advance, now_ms, self._wall_ms())
