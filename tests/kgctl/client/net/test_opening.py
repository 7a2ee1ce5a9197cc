"""Opening a connection to a host with several addresses."""

from __future__ import annotations

import socket
import time

import pytest

from kgctl.client.net.errors import Refused, Unreachable
from kgctl.client.net.opening import Locks, Opening
from kgctl.client.net.security import PLAINTEXT
from kgctl.client.net.steps import Endpoint
from tests.harness.ports import free_port


def resolve_to(monkeypatch: pytest.MonkeyPatch, *places: tuple[str, int]) -> Opening:
    rows = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", place) for place in places]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: rows)
    return Opening(Endpoint("broker", 9092), Locks(PLAINTEXT), "test", time.monotonic() + 10)


def test_the_next_address_is_tried_if_one_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        opening = resolve_to(monkeypatch, ("127.0.0.1", free_port()), server.getsockname())
        with opening:
            assert opening.run().in_flight == 0


def test_all_addresses_that_refuse_are_one_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Refused, match="broker:9092: connection refused"):
        resolve_to(monkeypatch, ("127.0.0.1", free_port()), ("127.0.0.1", free_port())).run()


def test_an_unknown_host_name_is_an_error() -> None:
    with pytest.raises(Unreachable, match="unknown host name"):
        Opening(Endpoint("no-such-host.invalid", 9092), Locks(PLAINTEXT), "test", time.monotonic() + 10).run()
