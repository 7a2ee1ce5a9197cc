"""What a client has sent and received, counted by kind of request; and a hook to watch each request."""

from __future__ import annotations

from typing import Protocol

from broker.light_dataclasses import dataclass, field
from broker.protocol.wire_types import Message
from kgctl.client.net.errors import KgctlError
from kgctl.client.net.steps import Endpoint


@dataclass(slots=True, eq=False)
class ApiTraffic:
    """Requests of one kind. Bytes without the four of the length; times in milliseconds from sending to the answer."""

    name: str
    requests: int = 0
    answers: int = 0
    failures: int = 0
    request_bytes: int = 0
    answer_bytes: int = 0
    total_ms: int = 0
    longest_ms: int = 0


@dataclass(slots=True, eq=False)
class Traffic:
    """Totals since the client began."""

    by_api: dict[int, ApiTraffic] = field(default_factory=dict)
    connections: int = 0
    lost_connections: int = 0

    def metrics(self) -> dict[str, float]:
        """Flat, by names like Kafka's: `request-total`, `incoming-byte-total`, and `produce.latency-avg` in milliseconds."""
        rows = self.by_api.values()
        found: dict[str, float] = {
            "connection-creation-total": self.connections,
            "connection-lost-total": self.lost_connections,
            "request-total": sum(row.requests for row in rows),
            "response-total": sum(row.answers for row in rows),
            "request-failure-total": sum(row.failures for row in rows),
            "outgoing-byte-total": sum(row.request_bytes for row in rows),
            "incoming-byte-total": sum(row.answer_bytes for row in rows),
        }
        for row in rows:
            found[f"{row.name}.request-total"] = row.requests
            found[f"{row.name}.request-latency-max"] = row.longest_ms
            found[f"{row.name}.request-latency-avg"] = row.total_ms / row.answers if row.answers else 0.0
        return found

    def of(self, request: type[Message]) -> ApiTraffic:
        found = self.by_api.get(request.API_KEY)
        if found is None:
            name = request.__name__.removesuffix("Request")
            found = self.by_api[request.API_KEY] = ApiTraffic(name)
        return found


class Observer(Protocol):
    """Sees each request. Sizes without the four bytes of the length."""

    def sent(self, link: int, endpoint: Endpoint, number: int, request: Message, version: int, size: int) -> None:
        """A request that will be answered."""

    def sent_unanswered(
        self, link: int, endpoint: Endpoint, number: int, request: Message, version: int, size: int
    ) -> None: ...

    def received(self, link: int, number: int, size: int) -> None: ...

    def lost(self, link: int, error: KgctlError) -> None:
        """The requests of a connection that are not answered yet never will be."""
