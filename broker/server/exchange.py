"""Exchange: one request in progress, and the slot of its answer in the connection's order of answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from broker.protocol.codec import Part
    from broker.protocol.wire_types import Message
    from broker.server.session import Session
    from broker.server.work import Work


class RequestRefused(Exception):
    """Close the connection, after `delay_s`; the text says why. The request gets `answer`, or none."""

    def __init__(self, reason: str, *, answer: Message | None = None, delay_s: float = 0.0) -> None:
        super().__init__(reason)
        self.answer = answer
        self.delay_s = delay_s


class Origin(Protocol):
    """The connection that a request came from."""

    client_host: str
    session: Session

    @property
    def now_s(self) -> float:
        """The event loop's clock."""
        ...

    def answered(self, exchange: Exchange, response: Message) -> None:
        """Encode the answer of one of this connection's exchanges."""
        ...

    def released(self) -> None:
        """Write the answers that are released and next in order."""
        ...

    def soon(self, run: Callable[[], None]) -> None:
        """Continue the request in progress in another turn of the event loop."""
        ...

    def abort(self) -> None:
        """Close the connection now."""
        ...


class Answerable(Protocol):
    """What a handler answers: an exchange, or one slice of it."""

    version: int
    client_id: str | None
    connection: Origin
    answered: bool
    abandon: Callable[[], None] | None
    complete: Callable[[Any], Message] | None

    def answer(self, response: Message) -> None: ...


def completed(exchange: Answerable, response: Message) -> Message:
    """The answer with what a guard adds to it. It does so once: an answer that is encoded bit by bit is completed before."""
    complete, exchange.complete = exchange.complete, None
    return response if complete is None else complete(response)


def complete_first(exchange: Answerable, complete: Callable[[Any], Message]) -> None:
    """Let a handler change an answer that is made elsewhere, before a guard completes it."""
    after = exchange.complete
    exchange.complete = complete if after is None else lambda response: after(complete(response))


class Exchange:
    """A request in progress. `answer` may be called at once or later; only the first call counts.

    `begun_s` is when it began to run. `parts` is the encoded answer. `released` means that it may be sent: everything it reports is durable.
    A handler that answers later sets `abandon`, which is called if the client disconnects first; it is None again once there will
    be no answer. A guard that narrows the request sets `complete`, which adds to the answer what was denied. `work` is what the
    request costs, if there are quotas.
    """

    __slots__ = (
        "abandon",
        "answered",
        "api_key",
        "begun_s",
        "client_id",
        "complete",
        "connection",
        "correlation_id",
        "parts",
        "released",
        "version",
        "work",
    )

    def __init__(
        self, connection: Origin, api_key: int, version: int, correlation_id: int, client_id: str | None
    ) -> None:
        self.connection = connection
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.parts: list[Part] = []
        self.answered = False
        self.released = False
        self.begun_s = 0.0
        self.abandon: Callable[[], None] | None = None
        self.complete: Callable[[Any], Message] | None = None
        self.work: Work | None = None

    def answer(self, response: Message) -> None:
        """Encode the answer now. It is sent once what it reports is durable and all earlier answers are sent."""
        if self.answered:
            return
        self.answered = True
        self.abandon = None
        self.connection.answered(self, response)

    def forgo(self) -> None:
        """End the exchange without an answer, as Produce with acks=0 requires."""
        self.answered = True
        self.released = True
