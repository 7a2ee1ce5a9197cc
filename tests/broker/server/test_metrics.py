"""Metrics over HTTP: what is counted, and clients that are slow, greedy or hostile."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from broker.config.listeners import Endpoint
from broker.protocol.messages.metadata import MetadataRequest
from broker.server.metrics import broker_families, client_families, server
from tests.broker.protocol.test_otlp import TIME, field, fixed, metrics
from tests.broker.server.test_telemetry import push, subscribe, subscription
from tests.harness.requests import create_topic, fetch_request, join_alone, produce
from tests.harness.running import DEADLINE_S, RunningBroker, until
from tests.harness.wire_client import WireClient

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningBroker]:
    """A broker with metrics, which are never older than the request."""
    monkeypatch.setattr(server, "FRESH_S", 0.0)
    with RunningBroker(tmp_path / "data", metrics_listen=Endpoint("127.0.0.1", 0)) as broker:
        yield broker


def address(broker: RunningBroker) -> tuple[str, int]:
    assert broker.broker.metrics is not None
    bound = broker.broker.metrics.bound
    return bound.host, bound.port


def asked(broker: RunningBroker, head: str = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n") -> tuple[str, str]:
    """The head and the body of the answer, at the end of which the broker closes the connection."""
    with socket.create_connection(address(broker), timeout=DEADLINE_S) as connection:
        connection.sendall(head.encode())
        answer = b""
        while received := connection.recv(65536):
            answer += received
    found, _, body = answer.decode().partition("\r\n\r\n")
    assert f"Content-Length: {len(body)}" in found or "HEAD" in head
    return found, body


def samples(broker: RunningBroker) -> Samples:
    head, body = asked(broker)
    assert head.startswith("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n")
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(body)
        for sample in family.samples
    }


def test_requests_errors_traffic_groups_and_logs_are_counted(measured: RunningBroker) -> None:
    with measured.client(client_id="app") as client:
        create_topic(client, "t", 2)
        produce(client, "t", b"x", b"y")
        before = samples(measured)
        produce(client, "t", b"z")
        client.ask(fetch_request("absent", 0, session_id=0, session_epoch=0), 12)
        join_alone(client, "orders")
        after = samples(measured)

    def more(name: str, **labels: str) -> float:
        key = name, tuple(sorted(labels.items()))
        return after[key] - before.get(key, 0)

    assert more("kgctl_request_seconds_count", api="Produce") == 1
    assert more("kgctl_request_seconds_bucket", api="Produce", le="+Inf") == 1
    assert 0 < more("kgctl_request_seconds_sum", api="Produce") < DEADLINE_S
    assert more("kgctl_request_errors_total", api="Fetch", error="UNKNOWN_TOPIC_OR_PARTITION") == 1
    assert more("kgctl_flush_seconds_count") >= 1
    assert more("kgctl_received_bytes_total") > 100
    assert more("kgctl_sent_bytes_total") > 100
    assert more("kgctl_topic_offsets_total", topic="t") == 1
    assert more("kgctl_topic_bytes", topic="t") > 0
    assert more("kgctl_fetch_sessions") == 1
    assert more("kgctl_group_rebalances_total") >= 1
    assert after["kgctl_groups", (("state", "Stable"), ("type", "classic"))] == 1
    assert after["kgctl_topic_partitions", (("topic", "t"),)] == 2
    assert after["kgctl_connections", (("listener", "PLAINTEXT"),)] == 1
    buckets = [value for (name, _), value in after.items() if name == "kgctl_flush_seconds_bucket"]
    assert buckets == sorted(buckets)
    with measured.client() as client:
        client.ask(MetadataRequest(topics=[]), 12)
        later = samples(measured)
    # The traffic of closed connections counts, too.
    received = "kgctl_received_bytes_total", ()
    assert later[received] > after[received]


def test_topics_beyond_the_limit_are_summed_up(measured: RunningBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_families, "MOST_TOPICS", 4)
    with measured.client() as client:
        for number in range(4):
            create_topic(client, f"t{number}", 2)
    found = samples(measured)
    topics = {
        dict(labels)["topic"]: value for (name, labels), value in found.items() if name == "kgctl_topic_partitions"
    }
    assert topics["t0"] == 2
    assert topics["(others)"] == 6
    assert len(topics) == 5


def test_metrics_of_clients_are_shown_with_their_labels(measured: RunningBroker) -> None:
    total = field(1, b"my.requests.total") + field(7, field(1, TIME + fixed(6, 3)) + field(2, 2) + field(3, 1))
    delta = field(1, b"my.delta") + field(7, field(1, TIME + fixed(6, 3)) + field(2, 1) + field(3, 1))
    label = field(7, field(1, b"node.id") + field(2, field(1, b'1"\n')))
    own = field(7, field(1, b"client_id") + field(2, field(1, b"forged")))
    gauge = field(1, b"my.9 gauge") + field(5, field(1, TIME + field(4, 2.5) + label + own))
    with measured.client(client_id="app") as client:
        subscribe(client)
        assert push(client, subscription(client), metrics(total, delta, gauge, gauge)) == 0
        with measured.client(client_id="broken") as other:
            assert push(other, subscription(other), b"\xff\xff") == 0
        found = {name: (dict(labels), value) for (name, labels), value in samples(measured).items()}
    labels, value = found["client_my_9_gauge"]
    assert (labels["client_id"], labels["node_id"], value) == ("app", '1"\n', 2.5)
    assert found["client_my_requests_total"][1] == 3
    assert "client_my_delta_total" not in found


def test_only_so_many_points_of_clients_are_shown(measured: RunningBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_families, "MOST_POINTS", 1)
    gauge = field(1, b"g") + field(5, field(1, TIME + field(4, 2.5)))
    with measured.client() as client:
        subscribe(client)
        for _ in range(2):
            assert push(client, subscription(client), metrics(gauge)) == 0
        assert sum(name == "client_g" for name, _ in samples(measured)) == 1


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("HEAD /metrics HTTP/1.1\r\n\r\n", "200 OK"),
        ("GET /metrics?x=1 HTTP/1.0\r\n\r\n", "200 OK"),
        ("GET /metrics HTTP/1.1\r\nhost: [::1]:9464\r\n\r\n", "200 OK"),
        ("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:9464\r\n\r\n", "200 OK"),
        ("GET /metrics HTTP/1.1\r\nHost: evil.example:9464\r\n\r\n", "403 Forbidden"),
        ("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1.evil.example\r\n\r\n", "403 Forbidden"),
        ("GET / HTTP/1.1\r\n\r\n", "404 Not Found"),
        ("POST /metrics HTTP/1.1\r\n\r\n", "405 Method Not Allowed"),
        ("\x00\x01\r\n\r\n", "405 Method Not Allowed"),
        ("GET /metrics HTTP/1.1\r\nX: " + "x" * 9000, "431 Request Header Fields Too Large"),
    ],
)
def test_other_requests_get_an_answer(measured: RunningBroker, head: str, status: str) -> None:
    found, body = asked(measured, head)
    assert found.startswith(f"HTTP/1.1 {status}\r\n")
    assert bool(body) == (not head.startswith("HEAD"))


def test_slow_and_many_clients_disturb_nobody(measured: RunningBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CONNECTION_S", 0.5)
    with ExitStack() as stack, measured.client() as client:
        idle = [
            stack.enter_context(socket.create_connection(address(measured), timeout=DEADLINE_S))
            for _ in range(server.MOST_CONNECTIONS + 8)
        ]
        for each in idle:
            each.sendall(b"GET /met")
        assert len(measured.broker.metrics.open) <= server.MOST_CONNECTIONS  # type: ignore[union-attr]
        create_topic(client, "t")
        assert produce(client, "t", b"x").error_code == 0
        # Those that wait are served once the idle ones are closed.
        assert samples(measured)
        assert idle[0].recv(1) == b""


def test_the_broker_stops_while_a_client_is_connected(measured: RunningBroker) -> None:
    with socket.create_connection(address(measured), timeout=DEADLINE_S) as connection:
        connection.sendall(b"GET")
        until(lambda: len(measured.broker.metrics.open) == 1)  # type: ignore[union-attr]
        measured.stop()
        assert connection.recv(1) == b""


def test_without_the_option_nothing_is_served_or_counted(running: RunningBroker, client: WireClient) -> None:
    create_topic(client, "t")
    assert running.broker.metrics is None
