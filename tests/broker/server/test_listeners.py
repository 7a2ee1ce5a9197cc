"""Several listeners: each has its own address, and its clients are given addresses of the same listener."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from broker.protocol.messages.metadata import MetadataRequest
from broker.server.listener import CannotListen
from tests.harness.running import RunningBroker
from tests.harness.wire_client import ConnectionClosed

MAP = "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT,SASL:SASL_PLAINTEXT"


def test_clients_are_given_the_addresses_of_the_listener_that_they_use(tmp_path: Path) -> None:
    options = {
        "listeners": "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
        "advertised_listeners": "OUTSIDE://kafka.example:0",
        "listener_security_protocol_map": MAP,
    }
    with RunningBroker(tmp_path, **options) as running:
        for name, host in (("INSIDE", "127.0.0.1"), ("OUTSIDE", "kafka.example")):
            expected = host, running.addresses[name][1]
            with running.client(name) as client:
                (node,) = client.ask(MetadataRequest(topics=[]), 12).brokers
                (coordinator,) = client.ask(FindCoordinatorRequest(coordinator_keys=["g"]), 4).coordinators
            assert (node.host, node.port) == (coordinator.host, coordinator.port) == expected


def test_a_client_that_has_not_authenticated_is_not_served(tmp_path: Path) -> None:
    options = {
        "listeners": "INSIDE://127.0.0.1:0,SASL://127.0.0.1:0",
        "listener_security_protocol_map": MAP,
        "sasl_enabled_mechanisms": "SCRAM-SHA-256",
    }
    with RunningBroker(tmp_path, **options) as running:
        with running.client("SASL") as client, pytest.raises(ConnectionClosed):
            client.ask(MetadataRequest(topics=[]), 12)
        with running.client("INSIDE") as client:
            client.ask(MetadataRequest(topics=[]), 12)


def test_no_listener_stays_bound_if_one_cannot_be_bound(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, socket.create_server(("127.0.0.1", 0)) as freed:
        port = freed.getsockname()[1]
        freed.close()
        listeners = f"INSIDE://127.0.0.1:{port},OUTSIDE://127.0.0.1:{taken.getsockname()[1]}"
        with (
            pytest.raises(CannotListen),
            RunningBroker(tmp_path, listeners=listeners, listener_security_protocol_map=MAP),
        ):
            pass
        socket.create_server(("127.0.0.1", port)).close()
