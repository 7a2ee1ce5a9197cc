"""Without a descriptor, a request gets an error for the partitions concerned, and the broker keeps running."""

from __future__ import annotations

import os
import resource
import socket
import sys
from pathlib import Path

import pytest

from broker.protocol.errors import ErrorCode
from tests.harness.broker_program import started
from tests.harness.descriptors import exhausted
from tests.harness.requests import create_topic, fetch, fetch_request, list_offset, produce, values_of
from tests.harness.running import RunningBroker, until
from tests.harness.transactions import TransactionalProducer
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


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_the_first_parallel_syncs_and_pending_offsets_need_no_descriptor(tmp_path: Path) -> None:
    with started(tmp_path / "data") as program:
        host, _, port = program.ready().address.rpartition(":")
        with WireClient((host, int(port))) as client:
            create_topic(client, "t", partitions=2)
            producer = TransactionalProducer(client, "tx")
            for partition in (0, 1):
                assert producer.produce("t", b"x", partition=partition).error_code == ErrorCode.NONE
            assert producer.commit_offsets("", "t", (0, 5)) == [ErrorCode.INVALID_GROUP_ID]
            limit, hard = resource.prlimit(program.pid, resource.RLIMIT_NOFILE)
            in_use = {int(name) for name in os.listdir(f"/proc/{program.pid}/fd")}
            resource.prlimit(program.pid, resource.RLIMIT_NOFILE, (max(in_use) + 1, hard))

            rows = client.ask(producer.produce_request(("t", 0), ("t", 1)), 12).responses[0].partition_responses
            assert [row.error_code for row in rows] == [ErrorCode.NONE] * 2
            assert producer.commit_offsets("g", "t", (0, 5)) == [ErrorCode.NONE]

            resource.prlimit(program.pid, resource.RLIMIT_NOFILE, (limit, hard))
            assert producer.end(committed=True) == ErrorCode.NONE
