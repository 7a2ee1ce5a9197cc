"""Long requests in slices: as many in a turn of the loop as its time allows, so that other clients have their turns between."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, NamedTuple

from broker.protocol.codec import Encoded, encode_entries

if TYPE_CHECKING:
    from broker.protocol.wire_types import Message
    from broker.server.exchange import Exchange, Waiting

# How long slices follow each other in one turn. The last one may end later: a slice is to be small.
TURN_S = 0.005


class Sliced(NamedTuple):
    """The fields of a request and of its response whose entries stand for themselves, and what tells whether two ask the same."""

    asked: str
    answered: str
    key: Callable[[Any], Hashable]
    size: int


class Slices:
    """One such request under way. It stands where an exchange stands: `run` takes each slice as a request of its own.

    What is asked twice is answered once: a few bytes must not ask for the same long answer again and again. The connection
    takes no other request meanwhile, since this one waits. Each slice's answer is encoded in its own turn: the answer to all
    would take long, and as objects it is many times as large.
    """

    def __init__(
        self,
        request: Message,
        sliced: Sliced,
        exchange: Exchange,
        run: Callable[[Any, Waiting], None],
    ) -> None:
        self._request, self._sliced, self._exchange, self._run = request, sliced, exchange, run
        once: dict[Hashable, Any] = {}
        for asked in getattr(request, sliced.asked):
            once.setdefault(sliced.key(asked), asked)
        self._asked = list(once.values())
        self._next = 0
        self._rows = Encoded()
        self._is_answered = self._given_up = False
        self.version, self.client_id, self.connection = exchange.version, exchange.client_id, exchange.connection
        self.answered = False
        self.abandon: Callable[[], None] | None = None
        exchange.abandon = self._give_up

    def go_on(self) -> None:
        """Run the next slices. One that is not answered when it has run is the last: the broker stops."""
        give_way_at = self.connection.now_s + TURN_S
        while not self._given_up:
            begin, self._next = self._next, self._next + self._sliced.size
            setattr(self._request, self._sliced.asked, self._asked[begin : self._next])
            self._is_answered = False
            self._run(self._request, self)
            if self.answered or not self._is_answered:
                return
            if self.connection.now_s > give_way_at:
                self.connection.soon(self.go_on)
                return

    def answer(self, response: Message) -> None:
        """The answer to one slice."""
        field, is_last = self._sliced.answered, self._next >= len(self._asked)
        if self._rows or not is_last:
            rows = getattr(response, field)
            self._rows.add(encode_entries(response, field, self.version), len(rows))
            setattr(response, field, self._rows)
        self._is_answered = True
        if is_last:
            self.answered = True
            self._exchange.answer(response)

    def _give_up(self) -> None:
        self._given_up = True
