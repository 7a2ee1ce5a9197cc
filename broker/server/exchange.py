"""One request of a connection, and the place of its answer in the order of answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from broker.protocol.codec import Part
    from broker.protocol.wire_types import Message
    from broker.server.connection import Connection
    from broker.server.router import Route


class Waiting(Protocol):
    """Who gets an answer: an exchange, or what stands for one."""

    version: int
    client_id: str | None
    connection: Connection
    answered: bool
    abandon: Callable[[], None] | None

    def answer(self, response: Message) -> None: ...


class Exchange:
    """A request under way. `answer` may be called at once or later, and counts once.

    `parts` is the encoded answer, `released` that it may be sent: whatever it tells is durable.
    A handler that answers later sets `abandon`, which is called if the client goes away before.
    """

    __slots__ = (
        "abandon",
        "answered",
        "client_id",
        "connection",
        "correlation_id",
        "parts",
        "released",
        "route",
        "version",
    )

    def __init__(
        self, connection: Connection, route: Route, version: int, correlation_id: int, client_id: str | None
    ) -> None:
        self.connection = connection
        self.route = route
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.parts: list[Part] = []
        self.answered = False
        self.released = False
        self.abandon: Callable[[], None] | None = None

    def answer(self, response: Message) -> None:
        """Encode the answer now; it leaves when what it tells is durable and all earlier answers have left."""
        if self.answered:
            return
        self.answered = True
        self.abandon = None
        self.connection.answered(self, response)

    def forgo(self) -> None:
        """End the exchange without an answer, as Produce with acks=0 wants it."""
        self.answered = True
        self.released = True
