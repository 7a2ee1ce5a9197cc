"""Telemetry over a socket: configs are subscriptions, librdkafka pushes, and the last push is described."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from broker.protocol.compression import decompress
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.api_versions import ApiVersionsRequest
from broker.protocol.messages.describe_clients import DescribeClientsRequest
from broker.protocol.messages.describe_telemetry import DescribeTelemetryRequest
from broker.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from broker.protocol.messages.push_telemetry import PushTelemetryRequest
from broker.protocol.otlp import read_metrics
from broker.protocol.wire_types import ZERO_UUID
from broker.server.handlers import telemetry
from tests.broker.server.test_configs import DELETE, SET, change
from tests.harness.authorization.clusters import connect_as, secured_broker
from tests.harness.running import RunningBroker, until
from tests.harness.wire_client import WireClient

METRICS = 16


def subscribe(client: WireClient, name: str = "all", *, interval_ms: int = 100, match: str = "") -> None:
    entries = [("metrics", SET, "*"), ("interval.ms", SET, str(interval_ms)), ("match", SET, match)]
    assert change(client, METRICS, name, *entries) == ErrorCode.NONE


def subscription(client: WireClient, instance_id: bytes = ZERO_UUID) -> Any:
    return client.ask(GetTelemetrySubscriptionsRequest(client_instance_id=instance_id))


def push(client: WireClient, got: Any, metrics: bytes) -> int:
    request = PushTelemetryRequest(
        client_instance_id=got.client_instance_id,
        subscription_id=got.subscription_id,
        terminating=False,
        compression_type=0,
        metrics=metrics,
    )
    return int(client.ask(request).error_code)


def instances(client: WireClient) -> list[Any]:
    found, after = [], 0
    while after >= 0:
        answer = client.ask(DescribeTelemetryRequest(after=after))
        found += answer.instances
        after = answer.next_after
    return found


def test_a_config_of_client_metrics_is_a_subscription_from_then_on(running: RunningBroker, client: WireClient) -> None:
    with running.client(client_id="app-1") as app, running.client(client_id="other") as other:
        got = subscription(app)
        assert (got.error_code, got.requested_metrics) == (ErrorCode.NONE, [])
        assert subscription(app, got.client_instance_id).error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        subscribe(client, match="client_id=app-.*, client_source_address=127.*")
        got = subscription(app, got.client_instance_id)
        assert (got.requested_metrics, got.push_interval_ms) == (["*"], 100)
        assert got.telemetry_max_bytes == 1024 * 1024
        assert subscription(other).requested_metrics == []
        assert push(app, got, b"metrics") == ErrorCode.NONE
        (row, _) = instances(client)
        named = {each.client_id: each.client_instance_id for each in client.ask(DescribeClientsRequest()).clients}
    assert (row.client_id, row.metrics, row.pushes, row.requested_metrics) == ("app-1", b"metrics", 1, ["*"])
    assert named["app-1"] == row.client_instance_id == got.client_instance_id


def test_telemetry_is_offered_while_there_is_a_subscription(running: RunningBroker, client: WireClient) -> None:
    def offered() -> set[int]:
        with running.client() as fresh:
            answer = fresh.ask(ApiVersionsRequest(client_software_name="test", client_software_version="1"))
            return {row.api_key for row in answer.api_keys} & {71, 72}

    assert offered() == set()
    subscribe(client)
    assert offered() == {71, 72}
    running.restart()
    assert offered() == {71, 72}


def test_a_deleted_subscription_is_no_longer_in_force(client: WireClient) -> None:
    subscribe(client)
    got = subscription(client)
    assert got.requested_metrics == ["*"]
    deleted: list[tuple[str, int, str | None]] = [(name, DELETE, None) for name in ("metrics", "interval.ms", "match")]
    assert change(client, METRICS, "all", *deleted) == ErrorCode.NONE
    assert push(client, got, b"m") == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert subscription(client, got.client_instance_id).requested_metrics == []


def test_subscriptions_survive_a_restart(running: RunningBroker) -> None:
    with running.client() as client:
        subscribe(client)
    running.restart()
    with running.client() as client:
        assert subscription(client).requested_metrics == ["*"]


@pytest.mark.parametrize(
    "match",
    ["client_id=(", "client_id=", "client_id=a=b", "colour=red", pytest.param("client_id=" + "a" * 257, id="long")],
)
def test_a_pattern_that_cannot_be_used_is_refused(client: WireClient, match: str) -> None:
    assert change(client, METRICS, "all", ("match", SET, match)) == ErrorCode.INVALID_CONFIG


def test_librdkafka_pushes_its_metrics(running: RunningBroker, client: WireClient) -> None:
    subscribe(client)
    address = "{}:{}".format(*running.address)
    producer = Producer({"bootstrap.servers": address, "client.id": "app", "compression.type": "zstd"})
    producer.produce("t", b"x")
    producer.flush(10)
    (row,) = until(lambda: [each for each in instances(client) if each.pushes > 1])
    points = read_metrics(decompress(row.compression_type, bytes(row.metrics), 1 << 20))
    assert "org.apache.kafka.producer.request.latency.avg" in {point.metric for point in points}
    assert row.client_id == "app"
    assert not row.terminating


def test_many_pushes_are_described_in_several_answers(
    running: RunningBroker, client: WireClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telemetry, "PAGE_BYTES", 100)
    subscribe(client)
    for number in range(5):
        assert push(client, subscription(client), bytes([number]) * 60) == ErrorCode.NONE
    assert [row.metrics[0] for row in instances(client)] == list(range(5))
    assert len(client.ask(DescribeTelemetryRequest()).instances) == 2


def test_a_push_above_the_limit_of_the_broker_is_refused(tmp_path: Path) -> None:
    with RunningBroker(tmp_path / "data", **{"telemetry.max.bytes": "10"}) as broker, broker.client() as client:
        got = subscription(client)
        assert got.telemetry_max_bytes == 10
        assert push(client, got, bytes(11)) == ErrorCode.TELEMETRY_TOO_LARGE


@pytest.fixture
def alice(tmp_path: Path) -> Iterator[WireClient]:
    with secured_broker(tmp_path / "data", "User:alice") as broker, connect_as(broker, "User:alice") as client:
        yield client


def test_every_client_may_push_but_few_may_see_what_others_push(alice: WireClient) -> None:
    assert push(alice, subscription(alice), b"metrics") == ErrorCode.NONE
    answer = alice.ask(DescribeTelemetryRequest())
    assert (answer.error_code, answer.instances) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])
