"""Clients that disconnect, die, half-close or fall silent, also behind a parked request."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.describe_groups import DescribeGroupsRequest
from broker.protocol.messages.metadata import MetadataRequest
from broker.server import connection, held_bytes
from tests.harness.requests import (
    batch,
    create_topic,
    fetch_request,
    heartbeat_request,
    join_alone,
    join_request,
    metadata_of,
    produce,
    produce_request,
    values_of,
)
from tests.harness.running import RunningBroker, until
from tests.harness.wire_client import WireClient


def close(client: WireClient) -> None:
    client.close()


def reset(client: WireClient) -> None:
    # With this option, close() resets the connection.
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()


def half_close(client: WireClient) -> None:
    # Not the method of an SSLSocket, which leaves TLS.
    socket.socket.shutdown(client.socket, socket.SHUT_WR)


ends = pytest.mark.parametrize("end", [close, reset, half_close])


def flood(client: WireClient, size: int) -> None:
    """Send `size` bytes of requests, or as many as the system takes."""
    frame = client.frame(MetadataRequest(topics=[]), 12, answered=False)
    data = frame * (size // len(frame) + 1)
    client.socket.settimeout(0.05)
    position = 0
    try:
        while position < len(data):
            position += client.socket.send(data[position : position + 65536])
    except TimeoutError:
        pass
    client.socket.settimeout(10)


def pinned(running: RunningBroker, count: int, size: int) -> list[WireClient]:
    """Clients with a parked fetch and `size` bytes of requests behind it."""
    clients = [running.client() for _ in range(count)]
    for client in clients:
        client.send(fetch_request("t", 0, max_wait_ms=600_000), 12)
        flood(client, size)
    until(lambda: len(running.broker.waiters) == count)
    return clients


def gone(running: RunningBroker) -> None:
    """Wait until only one connection is left, and nothing of the others."""
    until(lambda: len(running.broker.connections) == 1)
    assert len(running.broker.waiters) == 0
    assert running.run(lambda: running.broker.connections.held.total) == 0
    assert running.run(lambda: len(running.broker.connections.hangups)) == 0


def expect_noticed(running: RunningBroker, dying: list[WireClient], end: Callable[[WireClient], None]) -> None:
    for each in dying:
        end(each)
    gone(running)
    for each in dying:
        each.close()


@ends
@pytest.mark.parametrize("size", [0, 100_000, 300_000, 3 << 20])
def test_a_dead_client_behind_a_parked_fetch_is_noticed(
    running: RunningBroker, client: WireClient, end: Callable[[WireClient], None], size: int
) -> None:
    create_topic(client, "t")
    dying = pinned(running, 2, size)
    expect_noticed(running, dying, end)


@ends
def test_a_dead_client_is_noticed_while_the_broker_does_not_read_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: Callable[[WireClient], None]
) -> None:
    monkeypatch.setattr(held_bytes, "QUEUE_BYTES", 1)
    with RunningBroker(tmp_path) as running, running.client() as client:
        create_topic(client, "t")
        dying = pinned(running, 2, 100_000)
        until(lambda: running.run(lambda: len(running.broker.connections.hangups)) == 2)
        expect_noticed(running, dying, end)


@ends
def test_dead_clients_are_noticed_while_memory_is_scarce(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: Callable[[WireClient], None]
) -> None:
    # Even what is read first from each connection is more than the part of the limit above which memory is scarce.
    monkeypatch.setattr(held_bytes, "HELD_BYTES", 20 << 20)
    monkeypatch.setattr(held_bytes, "SCARCE", 0.05)
    with RunningBroker(tmp_path, socket_request_max_bytes="1000") as running, running.client() as client:
        create_topic(client, "t")
        dying = pinned(running, 30, 500_000)
        until(lambda: running.run(lambda: running.broker.connections.held.total) > 2 << 20)
        expect_noticed(running, dying, end)


def test_queues_that_are_too_long_for_a_turn_wait_while_memory_is_scarce(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_bytes, "HELD_BYTES", 8 << 20)
    monkeypatch.setattr(held_bytes, "TURN_BYTES", 100_000)
    monkeypatch.setattr(held_bytes, "TURN_S", 0.0)
    with RunningBroker(tmp_path, socket_request_max_bytes="1000") as running, running.client() as client:
        create_topic(client, "t")
        hogs = pinned(running, 4, 600_000)
        until(lambda: running.run(lambda: running.broker.connections.held.total) > 2 << 20)
        for _ in range(3):
            client.ask(MetadataRequest(topics=[]), 12)
        for hog in hogs:
            close(hog)
        gone(running)


def test_queued_requests_count_in_the_memory_limit_and_spare_large_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_bytes, "HELD_BYTES", 4 << 20)
    with RunningBroker(tmp_path, socket_request_max_bytes="1500000") as running, running.client() as client:
        create_topic(client, "t")
        client.send_bytes(struct.pack(">i", 1_400_000) + bytes(1_000_000))
        until(lambda: running.run(lambda: running.broker.connections.held.total) >= 1_000_000)
        hogs = [running.client() for _ in range(100)]
        for hog in hogs:
            frame = hog.frame(MetadataRequest(topics=[]), 12, answered=False)
            hog.send_bytes(hog.frame(fetch_request("t", 0, max_wait_ms=600_000), 12) + frame * (60_000 // len(frame)))
        until(lambda: running.run(lambda: len(running.broker.connections)) < 60)
        assert client.is_quiet()
        assert running.run(lambda: running.broker.connections.held.total) <= 4 << 20
        for hog in hogs:
            hog.close()
        until(lambda: len(running.broker.connections) == 1)


def test_memory_returns_to_the_system_after_queues_are_dropped(
    running: RunningBroker, client: WireClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    returned: list[bool] = []
    monkeypatch.setattr(held_bytes, "RETURN_DELAY_S", 0.0)
    monkeypatch.setattr(held_bytes, "RETURNED_BYTES", 1 << 20)
    real = held_bytes._return_free_memory
    monkeypatch.setattr(held_bytes, "_return_free_memory", lambda: (real(), returned.append(True)))
    create_topic(client, "t")
    dying = pinned(running, 8, 300_000)
    assert not returned
    for each in dying:
        close(each)
    gone(running)
    until(lambda: returned)


def test_requests_queued_behind_a_parked_one_are_all_answered(running: RunningBroker, client: WireClient) -> None:
    create_topic(client, "t")
    count = 20_000
    with running.client() as reader:
        reader.send(fetch_request("t", 0, max_wait_ms=600_000), 12)
        reader.send_bytes(b"".join(reader.frame(MetadataRequest(topics=[]), 12) for _ in range(count)))
        until(lambda: len(running.broker.waiters) == 1)
        produce(client, "t", b"x")
        assert values_of(reader.receive().responses[0].partitions[0]) == [b"x"]
        for _ in range(count):
            assert reader.receive().brokers
    until(lambda: running.run(lambda: running.broker.connections.held.total) == 0)


def test_a_client_that_half_closes_gets_the_answers_to_its_requests(
    running: RunningBroker, client: WireClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One request in each turn: the broker reads the end of the connection before it has run the requests.
    monkeypatch.setattr(connection, "TURN_S", 0.0)
    create_topic(client, "t")
    count = 1000
    frames = [client.frame(produce_request("t", batch(b"x")), 12) for _ in range(count)]
    client.send_bytes(b"".join(frames))
    half_close(client)
    bases = [client.receive().responses[0].partition_responses[0].base_offset for _ in range(count)]
    assert bases == list(range(count))
    assert client.is_closed()


def test_a_client_that_disconnects_before_its_answer_does_not_affect_others(
    running: RunningBroker, client: WireClient
) -> None:
    create_topic(client, "t")
    for _ in range(20):
        dying = running.client()
        dying.send(produce_request("t", batch(b"last words")), 12)
        # With this option, close() resets the connection.
        dying.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        dying.close()
        assert produce(client, "t", b"x").error_code == ErrorCode.NONE
    until(lambda: len(running.broker.connections) == 1)


def test_parked_requests_of_a_disconnected_client_are_dropped(running: RunningBroker, client: WireClient) -> None:
    create_topic(client, "t")
    dying = running.client()
    dying.send(fetch_request("t", 0, max_wait_ms=600_000), 12)
    until(lambda: len(running.broker.waiters) == 1)
    dying.close()
    until(lambda: len(running.broker.waiters) == 0)

    member = running.client()
    joined = join_alone(member, "g")
    waiting = running.client()
    waiting.send(join_request("g"), 3)
    until(lambda: len(running.broker.groups) == 1)
    waiting.close()
    until(lambda: len(running.broker.groups) == 0)
    assert client.ask(heartbeat_request("g", joined), 3).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    member.close()


def test_a_member_that_dies_in_a_parked_join_stays_until_its_session_expires(
    tmp_path: Path,
) -> None:
    """As in Kafka, whose coordinator does not learn that a connection has ended."""
    options = {"group_min_session_timeout_ms": "300", "group_initial_rebalance_delay_ms": "0"}
    with RunningBroker(tmp_path, **options) as running, running.client() as client:
        joined = join_alone(client, "g")
        dying = running.client()
        dying.send(join_request("g", session_timeout_ms=300), 3)
        flood(dying, 300_000)
        until(lambda: len(running.broker.groups) == 1)
        reset(dying)
        until(lambda: len(running.broker.groups) == 0)

        assert client.ask(heartbeat_request("g", joined), 3).error_code == ErrorCode.REBALANCE_IN_PROGRESS
        rejoined = client.ask(join_request("g", joined.member_id), 3)
        assert (rejoined.error_code, len(rejoined.members)) == (ErrorCode.NONE, 2)
        # The dead member does not sync, so the group rebalances without it.
        until(lambda: client.ask(heartbeat_request("g", rejoined), 3).error_code == ErrorCode.REBALANCE_IN_PROGRESS)
        alone = client.ask(join_request("g", joined.member_id), 3)
        assert (alone.error_code, len(alone.members)) == (ErrorCode.NONE, 1)


def test_an_idle_connection_is_closed_and_one_with_a_parked_request_is_not(tmp_path: Path) -> None:
    with (
        RunningBroker(tmp_path, connections_max_idle_ms="800") as running,
        running.client() as idle,
        running.client() as parked,
        running.client() as active,
    ):
        create_topic(active, "t")
        parked.send(fetch_request("t", 0, max_wait_ms=1200), 12)
        while idle.is_quiet():
            assert metadata_of(active).brokers
        assert idle.is_closed()
        assert metadata_of(active).brokers
        assert parked.receive().responses[0].partitions[0].error_code == ErrorCode.NONE


def test_a_fetch_is_answered_before_its_client_counts_as_idle(tmp_path: Path) -> None:
    with RunningBroker(tmp_path, connections_max_idle_ms="300") as running, running.client() as client:
        create_topic(client, "t")
        client.send(fetch_request("t", 0, max_wait_ms=600_000), 12)
        assert client.receive().responses[0].partitions[0].error_code == ErrorCode.NONE
        assert client.is_closed()


def test_a_join_that_is_never_answered_does_not_keep_an_idle_connection_open(tmp_path: Path) -> None:
    options = {"group_initial_rebalance_delay_ms": "0", "connections_max_idle_ms": "300"}
    with (
        RunningBroker(tmp_path, **options) as running,
        running.client() as absent,
        running.client() as first,
        running.client() as second,
    ):
        joined = join_alone(absent, "g")
        first.send(join_request("g"), 3)
        until(lambda: len(running.broker.groups) == 1)
        (group,) = second.ask(DescribeGroupsRequest(groups=["g"]), 5).groups
        (member_id,) = {member.member_id for member in group.members} - {joined.member_id}
        second.send(join_request("g", member_id), 3)
        assert first.is_closed()
        assert second.is_quiet(0.5)


def test_a_join_may_wait_longer_than_the_idle_limit(tmp_path: Path) -> None:
    options = {"group_min_session_timeout_ms": "100", "connections_max_idle_ms": "200"}
    with RunningBroker(tmp_path, **options) as running, running.client() as first, running.client() as second:
        joined = join_alone(first, "g")
        second.send(join_request("g"), 3)
        until(lambda: first.is_closed())
        assert second.is_quiet(0.5)
        with running.client() as third:
            leave = heartbeat_request("g", joined)
            assert third.ask(leave, 3).error_code == ErrorCode.REBALANCE_IN_PROGRESS
            third.send(join_request("g", joined.member_id), 3)
            assert second.receive().error_code == ErrorCode.NONE
