"""Connections that fail: each failure has one clear sentence, and no wait exceeds its timeout."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import cast

import pytest

from broker.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from broker.protocol.messages.metadata import MetadataResponse
from kgctl.client.admin.admin import Admin
from kgctl.client.net.connection import Connection
from kgctl.client.net.connector import ConnectionSettings, Connector
from kgctl.client.net.errors import KgctlError, NotKafka, TimedOut, TlsFailed, Unreachable
from kgctl.client.net.steps import Endpoint
from kgctl.exit_codes import exit_code_of
from tests.harness.feeding import API_VERSIONS, METADATA
from tests.harness.listeners import listening, wait_for_the_end
from tests.harness.scripted_node import ScriptedNode

Listener = Callable[[Callable[[socket.socket], None]], Endpoint]


@pytest.fixture
def listen() -> Iterator[Listener]:
    """Starts a listener whose connections are handled by the given function."""
    with contextlib.ExitStack() as running:
        yield lambda handle: running.enter_context(listening(handle))


def ask(endpoint: Endpoint, timeout: float = 5.0) -> None:
    with Admin(ConnectionSettings((endpoint,), timeout=timeout)) as admin:
        admin.list_topics()


def connect(endpoint: Endpoint) -> Connection:
    return Connector(ConnectionSettings((endpoint,))).connect(endpoint, time.monotonic() + 5)


def answer_with(reply: bytes) -> Callable[[socket.socket], None]:
    def handle(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(reply)
        connection.recv(65536)

    return handle


def test_a_closed_port_is_refused_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        endpoint = Endpoint(*server.getsockname())
    with pytest.raises(Unreachable, match="connection refused; nothing listens there"):
        ask(endpoint)


@pytest.mark.parametrize("name", ["no-such-host.invalid", "x" * 64 + ".invalid"])
def test_a_host_name_that_does_not_exist_is_named(name: str) -> None:
    with pytest.raises(Unreachable, match=f"unknown host name {name!r}"):
        ask(Endpoint(name, 9092))


def test_a_broker_that_hangs_takes_no_longer_than_the_timeout(listen: Listener) -> None:
    endpoint = listen(wait_for_the_end)
    begun = time.monotonic()
    with pytest.raises(Unreachable, match="accepts connections but does not answer"):
        ask(endpoint, timeout=0.4)
    assert time.monotonic() - begun < 2


def test_a_connection_closed_before_the_answer_is_reported(listen: Listener) -> None:
    with pytest.raises(Unreachable, match="the other side closed the connection"):
        ask(listen(lambda connection: None))


def test_a_truncated_answer_is_reported(listen: Listener) -> None:
    def cut(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall((100).to_bytes(4, "big") + b"\0\0\0\1half")

    with pytest.raises(Unreachable, match="the other side closed the connection"):
        ask(listen(cut))


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "an HTTP server answers there"),
        (b"\x15\x03\x01\x00\x02\x02\x16", "requires TLS"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "not in Kafka's protocol"),
        (b"\0\0\0\3abc", "not in Kafka's protocol"),
        (b"\xff\xff\xff\xffabcd", "not in Kafka's protocol"),
        (b"\0\0\0\4\0\0\0\x63", "unexpected correlation id"),
        (b"\0\0\0\6\0\0\0\1\0\0", "cannot be decoded"),
        (b"\0\0\0\4\0\0\0\1", "cannot be decoded"),
    ],
)
def test_a_response_of_another_protocol_is_reported(listen: Listener, reply: bytes, sentence: str) -> None:
    with pytest.raises((NotKafka, TlsFailed), match=sentence) as caught:
        ask(listen(answer_with(reply)))
    assert exit_code_of(caught.value) == 7


def test_a_missing_later_response_is_a_timeout(listen: Listener) -> None:
    connection = connect(listen(wait_for_the_end))
    connection.send(ListGroupsRequest(), 0, ListGroupsResponse, time.monotonic() + 5)
    with pytest.raises(TimedOut, match="no answer in time"):
        connection.receive(time.monotonic() + 0.1)
    assert connection.closed


def test_a_broker_with_an_older_ApiVersions_gets_only_requests_that_it_offers() -> None:
    """KIP-511: it answers in version 0, whatever the version of the request."""
    node = ScriptedNode(
        {METADATA: lambda _: MetadataResponse(brokers=[], topics=[])}, offered={API_VERSIONS: (0, 0), METADATA: (0, 4)}
    )
    with node.listening() as endpoint:
        ask(endpoint)
    assert [(request.api_key, request.version) for request in node.received] == [
        (API_VERSIONS, 4),
        (API_VERSIONS, 0),
        (METADATA, 4),
    ]
    assert node.refused == []


def test_several_requests_may_be_in_flight(listen: Listener) -> None:
    def echo(connection: socket.socket) -> None:
        seen = b""
        while len(seen) < 2 * 18:
            seen += connection.recv(65536)
        for number in (1, 2):
            connection.sendall((10).to_bytes(4, "big") + number.to_bytes(4, "big") + bytes(6))

    connection = connect(listen(echo))
    sent = [connection.send(ListGroupsRequest(), 0, ListGroupsResponse, time.monotonic() + 5) for _ in range(2)]
    assert connection.in_flight == 2
    received = [connection.receive(time.monotonic() + 5) for _ in range(2)]
    assert [number for number, _ in received] == sent
    assert received[0][1] == ListGroupsResponse(groups=[])
    connection.close()


def test_every_failure_is_an_error_that_the_command_line_understands(listen: Listener) -> None:
    with pytest.raises(KgctlError):
        ask(listen(answer_with(b"\0" * 64)))


class Dripping:
    """A stream that gives one byte of an answer at a time. `longest_wait` is the longest wait beyond the deadline."""

    def __init__(self, deadline: float) -> None:
        self.deadline, self.timeout, self.longest_wait = deadline, 0.0, 0.0

    def settimeout(self, seconds: float) -> None:
        self.timeout = seconds

    def sendall(self, data: bytes) -> None:
        pass

    def recv_into(self, buffer: memoryview) -> int:
        self.longest_wait = max(self.longest_wait, time.monotonic() + self.timeout - self.deadline)
        threading.Event().wait(0.01)
        buffer[:1] = b"\1" if len(buffer) == 2 else b"\0"
        return 1

    def close(self) -> None:
        pass


def test_an_answer_that_stalls_after_its_first_bytes_takes_no_longer_than_the_timeout() -> None:
    stream = Dripping(time.monotonic() + 0.6)
    connection = Connection(Endpoint("a", 1), cast(socket.socket, stream), "test")
    connection.send(ListGroupsRequest(), 0, ListGroupsResponse, stream.deadline)
    with pytest.raises(TimedOut):
        connection.receive(stream.deadline)
    assert stream.longest_wait < 0.2
