"""Requests on their way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from broker.light_dataclasses import dataclass
from broker.protocol.wire_types import Message
from kgctl.client.net.errors import KgctlError

R = TypeVar("R", bound=Message)


@dataclass(slots=True, eq=False)
class Outgoing(Generic[R]):
    """A request on its way. `done` is called exactly once, with the answer or the error and the time, on the engine's turn.

    `request` is a message, or a function that makes it from the version once that is known; then `api` is its class.
    `response` is None if the broker does not answer (acks=0): `done` gets None once the request is written.
    `timeout_ms` is the request timeout, plus what the broker may hold the answer (Fetch, JoinGroup).
    """

    request: Message | Callable[[int], Message]
    response: type[R] | None
    done: Callable[[Any, int], None]
    timeout_ms: int
    min_version: int = 0
    max_version: int = 1 << 15
    api: type[Message] | None = None
    # Once it is sent.
    version: int = -1
    sent_ms: int = -1

    @property
    def kind(self) -> type[Message]:
        """The class of the request."""
        if self.api is not None:
            return self.api
        assert isinstance(self.request, Message)
        return type(self.request)

    def message(self) -> Message:
        """The request in its version."""
        request = self.request
        return request if isinstance(request, Message) else request(self.version)

    def fail(self, error: KgctlError, now_ms: int) -> None:
        self.done(error, now_ms)
