"""What a client sends and when: each connection and each request with its bytes and milliseconds, never what is in it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeAlias

from broker.light_dataclasses import dataclass, field
from broker.protocol.wire_types import Message
from kgctl.client.net.errors import KgctlError
from kgctl.client.net.steps import Endpoint


@dataclass(frozen=True, slots=True)
class Opened:
    """A connection that was opened, or failed to. The steps that were taken, in milliseconds; of TLS and SASL if used."""

    at: float
    node: str
    ms: float
    steps: dict[str, float]
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Exchanged:
    """A request with its answer, or with the error instead of one. `at` is when it was sent, in seconds since 1970.

    Bytes include the four of the length. A request that gets no answer (acks=0) has no response bytes and no milliseconds.
    """

    at: float
    node: str
    api: str
    version: int
    correlation_id: int
    request_bytes: int
    response_bytes: int | None = None
    ms: float | None = None
    error: str | None = None


Trace: TypeAlias = Callable[[Opened | Exchanged], None]


@dataclass(slots=True)
class _Sent:
    at: float
    began: float
    api: str
    version: int
    size: int


@dataclass(slots=True)
class RequestTrace:
    """The requests of one connection."""

    trace: Trace
    endpoint: Endpoint
    _sent: dict[int, _Sent] = field(default_factory=dict)

    def sent(self, number: int, request: Message, version: int, size: int, *, is_answered: bool) -> None:
        sent = _Sent(time.time(), time.perf_counter(), type(request).__name__.removesuffix("Request"), version, size)
        if is_answered:
            self._sent[number] = sent
        else:
            self._report(number, sent)

    def received(self, number: int, size: int) -> None:
        sent = self._sent.pop(number)
        self._report(number, sent, size, _ms_since(sent.began))

    def failed(self, error: KgctlError) -> None:
        """All requests without an answer get none."""
        for number, sent in self._sent.items():
            self._report(number, sent, None, _ms_since(sent.began), error.name)
        self._sent.clear()

    def _report(
        self, number: int, sent: _Sent, size: int | None = None, ms: float | None = None, error: str | None = None
    ) -> None:
        self.trace(Exchanged(sent.at, str(self.endpoint), sent.api, sent.version, number, sent.size, size, ms, error))


class OpeningTrace:
    """Takes the time of the steps of an opening. Without a trace it only runs them."""

    def __init__(self, trace: Trace | None, endpoint: Endpoint) -> None:
        self._trace, self._endpoint = trace, endpoint
        self._at, self._began = time.time(), time.perf_counter()
        self._steps: dict[str, float] = {}

    def step(self, name: str, run: Callable[[], object]) -> None:
        """Run one step. One that does nothing, such as TLS without TLS, returns None and is not listed."""
        began = time.perf_counter()
        if run() is not None:
            self._steps[name] = _ms_since(began)

    def ended(self, error: BaseException | None = None) -> None:
        if self._trace is not None:
            name = None if error is None else getattr(error, "name", type(error).__name__)
            self._trace(Opened(self._at, str(self._endpoint), _ms_since(self._began), self._steps, name))


def _ms_since(began: float) -> float:
    return round((time.perf_counter() - began) * 1000, 3)
