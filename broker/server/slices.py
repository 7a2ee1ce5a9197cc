"""Long requests in slices, one per turn of the loop, so that other clients have their turns between them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, NamedTuple

from broker.protocol.codec import Encoded, encode_entries

if TYPE_CHECKING:
    from broker.protocol.wire_types import Message
    from broker.server.exchange import Exchange, Waiting


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
        self._given_up = False
        self.version, self.client_id, self.connection = exchange.version, exchange.client_id, exchange.connection
        self.answered = False
        self.abandon: Callable[[], None] | None = None
        exchange.abandon = self._give_up

    def go_on(self) -> None:
        """Run the next slice."""
        if self._given_up:
            return
        begin, self._next = self._next, self._next + self._sliced.size
        setattr(self._request, self._sliced.asked, self._asked[begin : self._next])
        self._run(self._request, self)

    def answer(self, response: Message) -> None:
        """The answer to one slice."""
        field, is_last = self._sliced.answered, self._next >= len(self._asked)
        if self._rows or not is_last:
            rows = getattr(response, field)
            self._rows.add(encode_entries(response, field, self.version), len(rows))
            setattr(response, field, self._rows)
        if is_last:
            self.answered = True
            self._exchange.answer(response)
        else:
            self.connection.soon(self.go_on)

    def _give_up(self) -> None:
        self._given_up = True
