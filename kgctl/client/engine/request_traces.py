"""Passes the requests of an engine to a trace (`kgctl --trace`)."""

from __future__ import annotations

from broker.protocol.wire_types import Message
from kgctl.client.net.errors import KgctlError
from kgctl.client.net.steps import Endpoint
from kgctl.client.net.tracing import RequestTrace, Trace

_PREFIX = 4


class RequestTraces:
    """An Observer with one RequestTrace per connection."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._links: dict[int, RequestTrace] = {}

    def sent(self, link: int, endpoint: Endpoint, number: int, request: Message, version: int, size: int) -> None:
        self._of(link, endpoint).sent(number, request, version, _PREFIX + size, is_answered=True)

    def sent_unanswered(
        self, link: int, endpoint: Endpoint, number: int, request: Message, version: int, size: int
    ) -> None:
        self._of(link, endpoint).sent(number, request, version, _PREFIX + size, is_answered=False)

    def received(self, link: int, number: int, size: int) -> None:
        self._links[link].received(number, _PREFIX + size)

    def lost(self, link: int, error: KgctlError) -> None:
        found = self._links.pop(link, None)
        if found is not None:
            found.failed(error)

    def _of(self, link: int, endpoint: Endpoint) -> RequestTrace:
        found = self._links.get(link)
        if found is None:
            found = self._links[link] = RequestTrace(self._trace, endpoint)
        return found
