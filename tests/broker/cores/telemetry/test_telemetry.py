"""Telemetry of clients on a clock of the test: subscriptions, the pace of pushes, and what is remembered."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from broker.cores import telemetry
from broker.cores.patterns import Pattern
from broker.cores.telemetry import DEFAULT_INTERVAL_MS, FORGET_AFTER_MS, Client, Subscription, Telemetry
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from broker.protocol.messages.push_telemetry import PushTelemetryRequest
from broker.protocol.wire_types import ZERO_UUID

FINE, THROTTLED = ErrorCode.NONE, ErrorCode.THROTTLING_QUOTA_EXCEEDED
APP = Client(1, "app", "librdkafka", "2.10.0", "127.0.0.1", 4711)
EVERYTHING = Subscription(["*"], 1000, {})


class Clients:
    """Clients of one broker with pushes of up to 100 bytes."""

    def __init__(self, *subscriptions: Subscription) -> None:
        ids = count(2)
        self.core = Telemetry(100, lambda: next(ids).to_bytes(16, "big"))
        self.core.subscribe(subscriptions)
        self.now_ms = 0

    def get(self, instance_id: bytes = ZERO_UUID, client: Client = APP) -> Any:
        request = GetTelemetrySubscriptionsRequest(client_instance_id=instance_id)
        return self.core.get(request, client, self.now_ms)

    def push(self, got: Any, metrics: bytes = b"m", client: Client = APP, **fields: Any) -> int:
        request = PushTelemetryRequest(
            **{
                "client_instance_id": got.client_instance_id,
                "subscription_id": got.subscription_id,
                "terminating": False,
                "compression_type": 0,
                "metrics": metrics,
                **fields,
            }
        )
        return self.core.push(request, client, self.now_ms, wall_ms=7).error_code

    def pushed(self) -> list[bytes]:
        return [instance.push.metrics for instance in self.core.instances()]


def test_a_client_gets_an_id_and_the_metrics_of_all_subscriptions_that_match_it() -> None:
    clients = Clients(
        Subscription(["b.", "a."], 5000, {"client_id": Pattern("a.*"), "client_source_port": Pattern("4711")}),
        Subscription(["c.", "a."], 2000, {"client_software_version": Pattern(r"2\.10.*")}),
        Subscription(["d."], 1000, {"client_id": Pattern("ap")}),
    )
    got = clients.get()
    assert got.client_instance_id != ZERO_UUID
    assert (got.requested_metrics, got.push_interval_ms) == (["a.", "b.", "c."], 2000)
    assert (got.telemetry_max_bytes, got.delta_temporality) == (100, False)
    assert got.accepted_compression_types == [4, 3, 1, 2]


def test_a_subscription_to_everything_stands_for_all() -> None:
    assert Clients(EVERYTHING, Subscription(["a."], 500, {})).get().requested_metrics == ["*"]


def test_without_a_subscription_a_client_asks_again_after_five_minutes() -> None:
    clients = Clients()
    got = clients.get()
    assert (got.requested_metrics, got.push_interval_ms) == ([], DEFAULT_INTERVAL_MS)
    clients.now_ms = DEFAULT_INTERVAL_MS - 1
    assert clients.get(got.client_instance_id).error_code == THROTTLED
    clients.now_ms = DEFAULT_INTERVAL_MS
    again = clients.get(got.client_instance_id)
    assert (again.error_code, again.subscription_id) == (FINE, got.subscription_id)


def test_a_push_is_accepted_once_in_an_interval() -> None:
    clients = Clients(EVERYTHING)
    got = clients.get()
    clients.now_ms = 1
    assert clients.push(got, b"one") == FINE
    clients.now_ms = 1000
    assert clients.push(got, b"two") == THROTTLED
    clients.now_ms = 1001
    assert clients.push(got, b"three") == FINE
    assert clients.pushed() == [b"three"]
    assert clients.core.throttled == 1


def test_other_subscriptions_make_the_subscription_of_a_client_unknown() -> None:
    clients = Clients(EVERYTHING)
    got = clients.get()
    clients.core.subscribe([Subscription(["a."], 1000, {})])
    assert clients.push(got) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert clients.push(got) == THROTTLED
    clients.core.subscribe([Subscription(["b."], 1000, {})])
    again = clients.get(got.client_instance_id)
    assert (again.error_code, again.requested_metrics) == (FINE, ["b."])
    assert clients.get(got.client_instance_id).error_code == THROTTLED
    assert clients.push(again) == FINE


def test_an_unknown_subscription_is_refused() -> None:
    clients = Clients(EVERYTHING)
    got = clients.get()
    assert clients.push(got, subscription_id=got.subscription_id + 1) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert clients.get(got.client_instance_id).error_code == FINE


def test_an_unknown_compression_is_refused_and_the_client_may_ask_again() -> None:
    clients = Clients(EVERYTHING)
    got = clients.get()
    assert clients.push(got, compression_type=5) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert clients.get(got.client_instance_id).error_code == FINE


def test_a_push_that_is_too_large_is_refused() -> None:
    clients = Clients(EVERYTHING)
    got = clients.get()
    assert clients.push(got, bytes(101)) == ErrorCode.TELEMETRY_TOO_LARGE
    assert clients.pushed() == [b""]
    assert clients.get(got.client_instance_id).error_code == THROTTLED


def test_a_push_without_metrics_is_accepted_and_not_counted() -> None:
    clients = Clients(EVERYTHING)
    assert clients.push(clients.get(), b"") == FINE
    assert [instance.push.pushes for instance in clients.core.instances()] == [0]


@pytest.mark.parametrize("instance_id", [ZERO_UUID, bytes(15) + b"\1"])
def test_a_push_needs_an_id(instance_id: bytes) -> None:
    clients = Clients(EVERYTHING)
    assert clients.push(clients.get(), client_instance_id=instance_id) == ErrorCode.INVALID_REQUEST


def test_the_last_push_of_a_client_may_come_early_and_none_follows_it() -> None:
    clients = Clients(EVERYTHING)
    got = clients.get()
    assert clients.push(got, b"one") == FINE
    assert clients.push(got, b"last", terminating=True) == FINE
    clients.now_ms = 5000
    assert clients.push(got, b"more") == ErrorCode.INVALID_REQUEST
    assert clients.pushed() == [b"last"]


def test_a_push_to_a_broker_that_does_not_know_the_instance_is_accepted() -> None:
    first, second = Clients(EVERYTHING), Clients(EVERYTHING)
    got = first.get()
    assert second.push(got) == FINE
    assert second.get(got.client_instance_id).error_code == THROTTLED


def test_a_client_that_connects_again_may_ask_at_once_and_keeps_its_last_push() -> None:
    clients = Clients(EVERYTHING)
    got = clients.get()
    clients.push(got, b"one")
    again = clients.get(got.client_instance_id, APP._replace(connection=2))
    assert (again.error_code, again.subscription_id) == (FINE, got.subscription_id)
    assert clients.pushed() == [b"one"]


def test_a_silent_client_is_forgotten() -> None:
    clients = Clients(EVERYTHING)
    clients.push(clients.get())
    clients.now_ms = FORGET_AFTER_MS
    clients.core.forget(clients.now_ms)
    assert clients.pushed() == [b"m"]
    clients.now_ms = FORGET_AFTER_MS + 1
    clients.core.forget(clients.now_ms)
    assert clients.pushed() == []


def test_the_number_of_clients_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "MOST_INSTANCES", 2)
    clients = Clients(EVERYTHING)
    for name in (b"one", b"two", b"three"):
        clients.push(clients.get(), name)
    assert clients.pushed() == [b"two", b"three"]


def test_the_bytes_of_all_pushes_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "MOST_BYTES", 100)
    clients = Clients(EVERYTHING)
    for number in range(3):
        clients.push(clients.get(), bytes([number]) * 40)
    assert [len(pushed) for pushed in clients.pushed()] == [0, 40, 40]
