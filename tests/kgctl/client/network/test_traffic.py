"""Counts of requests, and the hook that watches them."""

from __future__ import annotations

from broker.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from broker.protocol.messages.produce import ProduceRequest
from broker.protocol.wire_types import Message
from kgctl.client.net.errors import KgctlError
from kgctl.client.net.steps import Endpoint
from kgctl.client.network.outgoing import Outgoing
from tests.harness.client_script import Script
from tests.kgctl.client.network.requests import connected, send


def test_requests_answers_and_failures_are_counted_by_kind() -> None:
    script = connected(Script(), 1)
    before = script.network.traffic.metrics()
    send(script)
    script.now_ms += 30
    script.answer(script.requests(HeartbeatRequest)[0], HeartbeatResponse())
    send(script)
    script.break_node(script.endpoint(1))
    script.turn()
    counted = script.network.traffic.by_api[HeartbeatRequest.API_KEY]
    assert (counted.requests, counted.answers, counted.failures) == (2, 1, 1)
    assert (counted.total_ms, counted.longest_ms) == (30, 30)
    assert counted.request_bytes > 2 * 20
    metrics = script.network.traffic.metrics()
    assert metrics["request-total"] == before["request-total"] + 2
    assert metrics["connection-creation-total"] == 2
    assert metrics["connection-lost-total"] == 1
    assert metrics["Heartbeat.request-latency-avg"] == 30


class Watching:
    def __init__(self) -> None:
        self.seen: list[str] = []

    def sent(self, link: int, endpoint: Endpoint, number: int, request: Message, version: int, size: int) -> None:
        self.seen.append(f"{endpoint} {type(request).__name__} v{version}")

    def sent_unanswered(
        self, link: int, endpoint: Endpoint, number: int, request: Message, version: int, size: int
    ) -> None:
        self.seen.append(f"unanswered {type(request).__name__}")

    def received(self, link: int, number: int, size: int) -> None:
        self.seen.append("received")

    def lost(self, link: int, error: KgctlError) -> None:
        self.seen.append(f"lost {error}")


def test_an_observer_sees_each_request() -> None:
    script = connected(Script(), 1)
    watching = Watching()
    script.network.observe(watching)
    send(script)
    script.answer(script.requests(HeartbeatRequest)[0], HeartbeatResponse())
    request = ProduceRequest(acks=0, timeout_ms=1000, topic_data=[])
    script.network.send(1, Outgoing(request, None, lambda *_: None, 1000), script.now_ms)
    script.turn()
    script.break_node(script.endpoint(1))
    assert watching.seen == [
        "host1:9092 HeartbeatRequest v4",
        "received",
        "unanswered ProduceRequest",
        "lost host1:9092: the other side closed the connection",
    ]
