"""Slices: a long request runs in several turns of the event loop, so that other clients get their turns in between."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

from broker.protocol.codec import Encoded, encode_entries
from broker.server.exchange import completed
from broker.server.guards import guarded

if TYPE_CHECKING:
    from broker.protocol.wire_types import Message
    from broker.server.declaration import Handler, SlicedHandler, SliceHandler, Slicing
    from broker.server.exchange import Answerable, Exchange
    from broker.server.guards import Guard
    from broker.server.resources import Resources

# How long the slices of one request may run in one turn. The last slice may end later, so slices should be small.
TURN_S = 0.005


def in_slices(begin: SlicedHandler, slicing: Slicing, guard: Guard | None) -> Handler:
    """The handler that runs a request of several entries in slices. The guard checks each slice as a request of its own."""

    def handle(request: Message, exchange: Exchange, resources: Resources) -> Message | None:
        run = begin(request, exchange, resources)
        if guard is not None:
            run = _guarded(guard, run, resources)
        if len(getattr(request, slicing.asked)) <= 1:
            return run(request, exchange)
        Slices(request, slicing, exchange, run).resume()
        return None

    return handle


def _guarded(guard: Guard, run: SliceHandler, resources: Resources) -> SliceHandler:
    def unguarded(part: Message, answerable: Answerable, _: Resources) -> Message | None:
        return run(part, answerable)

    behind_guard = guarded(guard, unguarded)
    return lambda part, answerable: behind_guard(part, answerable, resources)


class Slices:
    """A sliced request in progress. It stands in for the exchange: `run` handles each slice as a request of its own.

    Duplicate entries are answered once: a few bytes must not ask for the same long answer again and again. The connection
    takes no other request meanwhile, because this one is parked. Each slice's answer is encoded in its own turn: encoding the
    whole answer at once would take long, and its objects take many times the memory.
    """

    def __init__(self, request: Message, slicing: Slicing, exchange: Exchange, run: SliceHandler) -> None:
        self._request, self._slicing, self._exchange, self._run = request, slicing, exchange, run
        once: dict[Hashable, Any] = {}
        for asked in getattr(request, slicing.asked):
            once.setdefault(slicing.key(asked), asked)
        self._asked = list(once.values())
        self._next = 0
        self._rows = Encoded()
        self._slice_answered = self._abandoned = self._waiting = False
        self.version, self.client_id = exchange.version, exchange.client_id
        self.connection = exchange.connection
        self.answered = False
        self.abandon: Callable[[], None] | None = None
        self.complete: Callable[[Any], Message] | None = None
        exchange.abandon = self._abandon

    def resume(self) -> None:
        """Run the next slices. One that is not answered at once continues when it is."""
        give_way_at = self.connection.now_s + TURN_S
        while not self._abandoned:
            begin, self._next = self._next, self._next + self._slicing.size
            setattr(self._request, self._slicing.asked, self._asked[begin : self._next])
            self._slice_answered = False
            response = self._run(self._request, self)
            if response is not None:
                self.answer(response)
            self._waiting = not self._slice_answered
            if self.answered or self._waiting:
                return
            if self.connection.now_s > give_way_at:
                self.connection.soon(self.resume)
                return

    def answer(self, response: Message) -> None:
        """Take the answer to the present slice."""
        response = completed(self, response)
        field, is_last = self._slicing.answered, self._next >= len(self._asked)
        if self._rows or not is_last:
            rows = getattr(response, field)
            self._rows.add(encode_entries(response, field, self.version), len(rows))
            setattr(response, field, self._rows)
        self._slice_answered = True
        if is_last:
            self.answered = True
            self._exchange.answer(response)
        elif self._waiting:
            self.connection.soon(self.resume)

    def _abandon(self) -> None:
        self._abandoned = True
        if self.abandon is not None:
            # The present slice may itself take several turns.
            self.abandon()
