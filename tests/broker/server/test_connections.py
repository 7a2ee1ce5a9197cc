"""Concurrent connections: order, parked requests, back-pressure, limits, disconnects."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.list_groups import ListGroupsRequest
from broker.protocol.messages.metadata import MetadataRequest
from broker.server import held_bytes
from tests.harness.requests import (
    batch,
    commit_request,
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


def test_pipelined_requests_of_different_kinds_are_answered_in_order(client: WireClient) -> None:
    create_topic(client, "t")
    joined = join_alone(client, "g")
    asked = []
    for number in range(50):
        asked += [
            (heartbeat_request("g", joined), 3),
            (commit_request("g", joined, "t", number), 8),
            (produce_request("t", batch(b"%d" % number)), 9),
            (MetadataRequest(topics=[]), 12),
        ]

    client.send_bytes(b"".join(client.frame(request, version) for request, version in asked))

    answers = [client.receive() for _ in asked]
    bases = [answer.responses[0].partition_responses[0].base_offset for answer in answers[2::4]]
    assert bases == list(range(50))
    assert {answer.error_code for answer in answers[0::4]} == {ErrorCode.NONE}


def test_pipelined_commits_share_flushes(running: RunningBroker, client: WireClient) -> None:
    create_topic(client, "t")
    joined = join_alone(client, "g")
    flushes = []
    inner = running.log.flush
    running.run(lambda: setattr(running.log, "flush", lambda: (flushes.append(1), inner())[1]))

    client.send_bytes(b"".join(client.frame(commit_request("g", joined, "t", n), 8) for n in range(200)))

    assert [client.receive().topics[0].partitions[0].error_code for _ in range(200)] == [ErrorCode.NONE] * 200
    assert 1 <= len(flushes) <= 20


def test_no_answer_is_sent_before_the_flush_of_what_it_reports(running: RunningBroker, client: WireClient) -> None:
    create_topic(client, "t")
    joined = join_alone(client, "g")
    on_disk = threading.Event()
    inner = running.log.flush

    def flush() -> None:
        assert on_disk.wait(10)
        inner()

    running.run(lambda: setattr(running.log, "flush", flush))
    for request, version in (
        (produce_request("t", batch(b"x"), acks=1), 12),
        (produce_request("t", batch(b"x"), acks=-1), 12),
        (commit_request("g", joined, "t", 1), 8),
        (commit_request("simple", None, "t", 1), 8),
        (join_request("new"), 3),
        (MetadataRequest(topics=[MetadataRequest.Topic(name="made")]), 12),
    ):
        on_disk.clear()
        client.send(request, version)
        # A request that changes nothing waits too: its answer may report unflushed changes.
        client.send(heartbeat_request("g", joined), 3)
        assert client.is_quiet()
        on_disk.set()
        client.receive()
        assert client.receive().error_code == ErrorCode.NONE


def test_a_parked_join_delays_its_own_connection_only(running: RunningBroker, client: WireClient) -> None:
    with running.client() as first, running.client() as second:
        join_alone(first, "g")
        # The first member does not rejoin, so the join of the second one waits for it.
        second.send(join_request("g"), 3)
        second.send(MetadataRequest(topics=[]), 12)

        assert second.is_quiet()
        assert metadata_of(client).brokers

        first.send(join_request("g", "gone"), 3)
        assert first.receive().error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_requests_behind_a_parked_one_are_answered_after_it(running: RunningBroker, client: WireClient) -> None:
    create_topic(client, "t")
    with running.client() as reader:
        reader.send(fetch_request("t", 0, max_wait_ms=10_000), 12)
        reader.send(MetadataRequest(topics=[]), 12)
        assert reader.is_quiet()

        produce(client, "t", b"x")

        assert values_of(reader.receive().responses[0].partitions[0]) == [b"x"]
        assert reader.receive().brokers


def test_the_queue_behind_a_parked_request_is_bounded(running: RunningBroker, client: WireClient) -> None:
    create_topic(client, "t")
    with running.client() as reader:
        reader.send(fetch_request("t", 0, max_wait_ms=30_000), 12)
        frame = reader.frame(MetadataRequest(topics=[]), 12, answered=False)
        reader.socket.settimeout(0.3)
        sent = 0
        try:
            while sent < 64 << 20:
                sent += reader.socket.send(frame * 1000)
        except TimeoutError:
            pass
        assert sent < 32 << 20
        (connection,) = [c for c in running.broker.connections if c.parked]
        assert connection._inbox.queued_bytes <= held_bytes.QUEUE_BYTES + 256 * 1024
        assert metadata_of(client).brokers


def test_the_broker_stops_reading_from_a_client_that_does_not_read(running: RunningBroker, client: WireClient) -> None:
    for number in range(100):
        metadata_of(client, f"topic-{number}")
    with running.client() as deaf:
        deaf.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        frame = deaf.frame(MetadataRequest(topics=None), 12, answered=False)
        deaf.socket.settimeout(0.3)
        sent = 0
        try:
            while sent < 64 << 20:
                sent += deaf.socket.send(frame * 500)
        except TimeoutError:
            pass
        assert sent < 32 << 20
        held = until(
            lambda: running.run(
                lambda: [
                    connection._transport.get_write_buffer_size()
                    for connection in running.broker.connections
                    if connection._outbox.blocked
                ]
            )
        )
        assert max(held) < 8 << 20
        assert metadata_of(client).brokers


def test_a_client_that_reads_slowly_gets_every_byte(running: RunningBroker, client: WireClient) -> None:
    create_topic(client, "big")
    value = bytes(range(256)) * 2048
    for _ in range(8):
        assert produce(client, "big", value).error_code == ErrorCode.NONE
    with running.client() as slow:
        slow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32768)
        asking = fetch_request("big", 0, max_bytes=16 << 20, partition_max_bytes=16 << 20)
        slow.send(asking, 12)
        slow.send(MetadataRequest(topics=[]), 12)
        row = slow.receive().responses[0].partitions[0]
        assert values_of(row) == [value] * 8
        assert slow.receive().brokers


def test_connections_above_the_limit_wait_until_one_closes(tmp_path: Path) -> None:
    with RunningBroker(tmp_path, max_connections="2") as running:
        first, second, third = running.client(), running.client(), running.client()
        assert metadata_of(first).brokers
        assert metadata_of(second).brokers
        third.send(MetadataRequest(topics=[]), 12)
        assert third.is_quiet()
        first.close()
        assert third.receive().brokers
        second.close()
        third.close()


def test_connections_of_one_host_above_the_limit_are_refused(tmp_path: Path) -> None:
    with RunningBroker(tmp_path, max_connections_per_ip="2") as running:
        clients = [running.client() for _ in range(3)]
        assert metadata_of(clients[0]).brokers
        assert clients[2].is_closed()
        clients[0].close()
        until(lambda: len(running.broker.connections) == 1)
        with running.client() as another:
            assert metadata_of(another).brokers
        for client in clients:
            client.close()


def test_a_host_may_have_a_limit_of_its_own(tmp_path: Path) -> None:
    options = {"max_connections_per_ip": "0", "max_connections_per_ip_overrides": "192.0.2.1:9, localhost:1"}
    with RunningBroker(tmp_path, **options) as running, running.client() as first, running.client() as second:
        assert metadata_of(first).brokers
        assert second.is_closed()


def test_a_listener_may_have_a_limit_of_its_own(tmp_path: Path) -> None:
    options = {
        "listeners": "A://127.0.0.1:0,B://127.0.0.1:0",
        "listener_security_protocol_map": "A:PLAINTEXT,B:PLAINTEXT",
        "listener_name_a_max_connections": "1",
    }
    with RunningBroker(tmp_path, **options) as running, running.client("A") as first, running.client("A") as second:
        assert metadata_of(first).brokers
        second.send(MetadataRequest(topics=[]), 12)
        assert second.is_quiet()
        with running.client("B") as other:
            assert metadata_of(other).brokers
        first.close()
        assert second.receive().brokers


def test_hundreds_of_clients_that_connect_at_once_are_all_served(running: RunningBroker) -> None:
    clients = [running.client() for _ in range(300)]
    for client in clients:
        client.send(MetadataRequest(topics=[]), 12)
    for client in clients:
        assert client.receive().brokers
        client.close()
    until(lambda: len(running.broker.connections) == 0)


def test_a_client_with_expensive_requests_does_not_starve_others(running: RunningBroker, client: WireClient) -> None:
    create_topic(client, "wide", partitions=2000)
    with running.client() as greedy:
        greedy.send_bytes(b"".join(greedy.frame(MetadataRequest(topics=None), 12) for _ in range(150)))
        for _ in range(20):
            client.ask(ListGroupsRequest(), 4)
        # The twenty requests came later and were answered between those of the greedy client.
        assert running.run(lambda: [c for c in running.broker.connections if c._behind])
        for _ in range(150):
            greedy.receive_frame()


def test_a_vanished_host_is_noticed_by_keepalive_within_two_minutes(running: RunningBroker, client: WireClient) -> None:
    client.ask(ListGroupsRequest())
    (connection,) = running.broker.connections
    accepted = connection._transport.get_extra_info("socket")
    idle = getattr(socket, "TCP_KEEPIDLE", None) or socket.TCP_KEEPALIVE
    options = [accepted.getsockopt(socket.IPPROTO_TCP, o) for o in (idle, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)]
    assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) != 0
    assert options[0] + options[1] * options[2] <= 120
