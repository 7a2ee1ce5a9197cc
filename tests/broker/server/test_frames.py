"""Bytes on a socket: frames that are split, joined, too large, too short, unknown, or not Kafka at all."""

from __future__ import annotations

import contextlib
import struct
from pathlib import Path

import pytest

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from broker.protocol.messages.metadata import MetadataRequest
from tests.harness.requests import metadata_of
from tests.harness.running import RunningBroker, until
from tests.harness.wire_client import ConnectionClosed, WireClient

SOFTWARE = {"client_software_name": "test", "client_software_version": "1"}


def header(api_key: int, version: int, *, client_id: bytes | None = b"t") -> bytes:
    name = struct.pack(">h", -1) if client_id is None else struct.pack(">h", len(client_id)) + client_id
    return struct.pack(">hhi", api_key, version, 7) + name


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def still_serves(running: RunningBroker) -> bool:
    with running.client() as other:
        return bool(other.ask(ApiVersionsRequest(**SOFTWARE)).error_code == ErrorCode.NONE)


def test_a_request_may_arrive_byte_by_byte(client: WireClient) -> None:
    for byte in client.frame(MetadataRequest(topics=[])):
        client.send_bytes(bytes([byte]))

    assert client.receive().brokers[0].node_id == 1


def test_requests_in_one_segment_are_answered_in_order(client: WireClient) -> None:
    frames = [client.frame(MetadataRequest(topics=[]), version) for version in (1, 5, 12, 9)]

    client.send_bytes(b"".join(frames))

    for _ in frames:
        assert client.receive().brokers[0].port


def test_a_request_cut_anywhere_is_answered_once_it_is_complete(running: RunningBroker) -> None:
    for cut in range(1, 40, 3):
        with running.client() as client:
            data = client.frame(MetadataRequest(topics=[])) + client.frame(MetadataRequest(topics=[]))
            client.send_bytes(data[:cut])
            client.send_bytes(data[cut:])
            assert client.receive().brokers
            assert client.receive().brokers


@pytest.mark.parametrize("length", [-1, -(2**31), 2**31 - 1, 100 * 1024 * 1024 + 1])
def test_an_impossible_length_closes_the_connection(running: RunningBroker, length: int) -> None:
    with running.client() as client:
        client.send_bytes(struct.pack(">i", length))
        assert client.is_closed()
    assert still_serves(running)


@pytest.mark.parametrize(
    "data",
    [b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", bytes.fromhex("16030100f8010000f40303"), b"\xff" * 16],
    ids=["http", "tls", "noise"],
)
def test_a_client_of_another_protocol_is_disconnected(running: RunningBroker, data: bytes) -> None:
    with running.client() as client:
        client.send_bytes(data)
        assert client.is_closed()


def test_the_largest_request_is_accepted_and_one_byte_more_is_not(running_small: RunningBroker) -> None:
    with running_small.client() as client:
        client.send_bytes(struct.pack(">i", 1000) + header(3, 1) + bytes(1000 - 11))
        assert client.receive_frame()
    with running_small.client() as client:
        client.send_bytes(struct.pack(">i", 1001))
        assert client.is_closed()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\0",
        struct.pack(">hh", 3, 12),
        struct.pack(">hhi", 3, 12, 1),
        header(999, 0),
        header(-1, 0),
        header(3, 14),
        header(3, -1),
        header(0, 2) + bytes(64),
        header(3, 12),
        header(3, 5) + struct.pack(">i", 2**31 - 1),
        struct.pack(">hhih", 3, 1, 1, 30000) + b"short",
    ],
    ids=[
        "empty",
        "one byte",
        "no correlation id",
        "no client id",
        "unknown key",
        "negative key",
        "version above",
        "negative version",
        "produce below the readable versions",
        "no body",
        "array without elements",
        "client id cut short",
    ],
)
def test_bytes_that_are_no_request_close_the_connection_without_an_answer(running: RunningBroker, body: bytes) -> None:
    with running.client() as client:
        client.send_bytes(framed(body))
        assert client.is_closed()
    assert still_serves(running)


def test_bytes_after_a_complete_body_are_ignored(client: WireClient) -> None:
    client.send_bytes(framed(header(3, 1) + struct.pack(">i", 0) + b"and more"))

    assert client.receive_frame()


def test_a_request_without_client_id_is_served(client: WireClient) -> None:
    client.send_bytes(framed(header(3, 1, client_id=None) + struct.pack(">i", 0)))

    assert client.receive_frame()


def test_unfinished_requests_cannot_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker.server.held_bytes.HELD_BYTES", 1 << 20)
    with RunningBroker(tmp_path, socket_request_max_bytes="500000") as running, contextlib.ExitStack() as stack:
        small = stack.enter_context(running.client())
        small.send_bytes(struct.pack(">i", 400_000) + bytes(100_000))
        hogs = [stack.enter_context(running.client()) for _ in range(4)]
        for size, hog in zip((280_000, 290_000, 300_000, 310_000), hogs, strict=True):
            hog.send_bytes(struct.pack(">i", 499_000) + bytes(size))

        until(lambda: len(running.broker.connections) == 4)
        # The broker closed the connection with the most bytes; the others fit, the smallest among them.
        assert small.is_quiet()
        assert still_serves(running)


def test_requests_before_a_bad_one_are_answered_before_the_connection_closes(client: WireClient) -> None:
    good = client.frame(MetadataRequest(topics=[])) + client.frame(MetadataRequest(topics=[]))

    client.send_bytes(good + framed(header(999, 0)) + client.frame(MetadataRequest(topics=[])))

    assert client.receive().brokers
    assert client.receive().brokers
    with pytest.raises(ConnectionClosed):
        client.receive()


def test_an_answer_that_waits_for_a_flush_is_sent_before_the_connection_closes(client: WireClient) -> None:
    creating = client.frame(MetadataRequest(topics=[MetadataRequest.Topic(name="made")]), 12)

    client.send_bytes(creating + framed(b"nonsense"))

    assert client.receive().topics[0].error_code == ErrorCode.NONE
    assert client.is_closed()


def test_an_unknown_version_of_api_versions_is_answered_in_version_0(client: WireClient) -> None:
    client.send_bytes(framed(header(18, 99)))

    answer = client.receive_as(ApiVersionsResponse, 0)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(row.api_key, row.min_version, row.max_version) for row in answer.api_keys] == [(18, 0, 4)]
    assert client.ask(ApiVersionsRequest(**SOFTWARE)).error_code == ErrorCode.NONE


def test_an_invalid_client_software_name_is_an_invalid_request(client: WireClient) -> None:
    assert (
        client.ask(ApiVersionsRequest(client_software_name="-", client_software_version="1")).error_code
        == ErrorCode.INVALID_REQUEST
    )
    assert metadata_of(client).brokers
