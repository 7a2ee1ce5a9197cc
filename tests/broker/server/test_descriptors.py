"""Without a descriptor, a request gets an error for the partitions concerned, and the broker keeps running."""

from __future__ import annotations

import os
import socket

import pytest

from broker.protocol.errors import ErrorCode
from tests.harness.descriptors import exhausted
from tests.harness.requests import create_topic, fetch, fetch_request, list_offset, produce, values_of
from tests.harness.running import RunningBroker, until
from tests.harness.wire_client import ConnectionClosed, WireClient


def keep_one_file_open(running: RunningBroker) -> None:
    """So that the file of only one partition is open."""
    running.run(lambda: setattr(running.log._files, "limit", 1))


def test_requests_without_a_descriptor_fail_for_their_partition_alone(
    running: RunningBroker, client: WireClient
) -> None:
    create_topic(client, "t", partitions=3)
    keep_one_file_open(running)
    for partition in (0, 1):
        produce(client, "t", b"x", partition=partition)
        assert values_of(fetch(client, "t", 0, partition=partition)) == [b"x"]
        assert list_offset(client, "t", 0, partition=partition).offset == 0

    with exhausted(running.log):
        for partition in (0, 2):
            assert produce(client, "t", b"y", partition=partition).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert fetch(client, "t", 0, max_wait_ms=10_000).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert list_offset(client, "t", 0).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert values_of(fetch(client, "t", 0, partition=1)) == [b"x"]
        assert produce(client, "t", b"y", partition=1).error_code == ErrorCode.NONE

    for partition, values in ((0, [b"x", b"z"]), (1, [b"x", b"y", b"z"]), (2, [b"z"])):
        assert produce(client, "t", b"z", partition=partition).error_code == ErrorCode.NONE
        assert values_of(fetch(client, "t", 0, partition=partition)) == values


def test_an_answer_continues_once_its_file_can_be_opened_again(running: RunningBroker, client: WireClient) -> None:
    create_topic(client, "t", partitions=2)
    value = b"x" * 500_000
    for _ in range(16):
        produce(client, "t", value)
    keep_one_file_open(running)
    with running.client() as slow:
        slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 256 << 10)
        slow.send(fetch_request("t", 0, max_bytes=16 << 20, partition_max_bytes=16 << 20), 12)
        until(lambda: running.run(lambda: any(each._outbox.blocked for each in running.broker.connections)))
        produce(client, "t", b"y", partition=1)
        with exhausted(running.log):
            slow.socket.settimeout(0.3)
            received = b""
            try:
                while chunk := slow.socket.recv(1 << 20):
                    received += chunk
            except TimeoutError:
                pass
            assert 0 < len(received) < 8_000_000
        slow.socket.settimeout(10)
        slow._received = received
        assert values_of(slow.receive().responses[0].partitions[0]) == [value] * 16


def test_an_answer_that_cannot_be_completed_ends_its_connection_alone(
    running: RunningBroker, client: WireClient, caplog: pytest.LogCaptureFixture
) -> None:
    create_topic(client, "t")
    for _ in range(16):
        produce(client, "t", b"x" * 500_000)
    (segment,) = running.data_dir.rglob("*.log")
    with running.client() as slow:
        slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 256 << 10)
        slow.send(fetch_request("t", 0, max_bytes=16 << 20, partition_max_bytes=16 << 20), 12)
        until(lambda: running.run(lambda: any(each._outbox.blocked for each in running.broker.connections)))
        os.truncate(segment, 1000)
        with pytest.raises(ConnectionClosed):
            slow.receive()
    until(lambda: len(running.broker.connections) == 1)
    assert create_topic(client, "other").error_code == ErrorCode.NONE
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []
    assert "cannot read the records of an answer" in caplog.text
