"""Client quotas over sockets: requests that exceed one are answered with a throttle time, and their connections are muted."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.alter_client_quotas import AlterClientQuotasRequest
from broker.protocol.messages.create_partitions import CreatePartitionsRequest
from broker.protocol.messages.create_topics import CreateTopicsRequest
from broker.protocol.messages.delete_topics import DeleteTopicsRequest
from broker.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from broker.protocol.messages.metadata import MetadataRequest
from broker.server import held_bytes
from broker.server.connection import READ_BYTES
from tests.broker.server.test_disconnects import close, flood, half_close, reset
from tests.harness import sasl_conversations as sasl
from tests.harness.requests import (
    NO_TOPIC,
    batch,
    create_topic,
    fetch,
    fetch_request,
    produce,
    produce_request,
    values_of,
)
from tests.harness.running import RunningBroker, until
from tests.harness.share_member import ShareMember, begin_share_group
from tests.harness.wire_client import ConnectionClosed, WireClient

USER = "ANONYMOUS"
# The test ends long before.
LONG_MS = 30_000
METADATA = MetadataRequest(topics=[])


def set_quota(client: WireClient, key: str, value: float | None, **entity: str | None) -> None:
    parts = [
        AlterClientQuotasRequest.Entity(entity_type=kind.replace("_", "-"), entity_name=name)
        for kind, name in entity.items()
    ]
    op = AlterClientQuotasRequest.Op(key=key, value=value or 0.0, remove=value is None)
    (row,) = client.ask(
        AlterClientQuotasRequest(entries=[AlterClientQuotasRequest.Entry(entity=parts, ops=[op])])
    ).entries
    assert row.error_code == ErrorCode.NONE, row.error_message


def quotas_of(client: WireClient) -> dict[tuple[tuple[str, str | None], ...], dict[str, float]]:
    answer = client.ask(DescribeClientQuotasRequest(components=[], strict=False))
    return {
        tuple((part.entity_type, part.entity_name) for part in entry.entity): {
            found.key: found.value for found in entry.values
        }
        for entry in answer.entries
    }


def produced(client: WireClient, size: int, *, acks: int = -1) -> Any:
    """Produce a batch of about this size. Returns the answer."""
    return client.ask(produce_request("t", batch(b"x" * size), acks=acks), 12)


def records(client: WireClient) -> list[bytes | None]:
    return values_of(fetch(client, "t", 0))


@pytest.fixture
def slow(running: RunningBroker, client: WireClient) -> Iterator[WireClient]:
    """A client that may produce 1000 bytes per second; its topic is `t`."""
    create_topic(client, "t")
    set_quota(client, "producer_byte_rate", 1000, client_id="slow")
    with running.client(client_id="slow") as connected:
        yield connected


def test_a_producer_is_answered_with_the_throttle_time_and_then_muted(client: WireClient, slow: WireClient) -> None:
    assert produced(slow, 9000).throttle_time_ms == 0
    answer = produced(slow, 40_000)
    assert answer.throttle_time_ms > LONG_MS
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE

    slow.send(METADATA)
    # Others are served, and what the muted client produced is there.
    assert len(records(client)) == 2
    assert produced(client, 40_000).throttle_time_ms == 0
    assert slow.is_quiet()


def test_a_muted_client_continues_after_the_throttle_time(slow: WireClient) -> None:
    assert produced(slow, 9800).throttle_time_ms == 0
    frames = [slow.frame(produce_request("t", batch(b"x" * 100)), 12) for _ in range(3)]
    slow.send_bytes(b"".join(frames))
    offsets, throttles = [], []
    for _ in frames:
        answer = slow.receive()
        offsets.append(answer.responses[0].partition_responses[0].base_offset)
        throttles.append(answer.throttle_time_ms)
    assert offsets == [1, 2, 3]
    assert all(0 < throttle < 1000 for throttle in throttles)


def test_a_producer_without_acks_is_muted_too(client: WireClient, slow: WireClient) -> None:
    request = produce_request("t", batch(b"x" * 50_000), acks=0)
    slow.send_bytes(slow.frame(request, 12, answered=False) + slow.frame(METADATA, 12))
    until(lambda: len(records(client)) == 1)
    assert slow.is_quiet()


def test_the_quota_is_shared_by_the_connections_of_a_client(running: RunningBroker, slow: WireClient) -> None:
    produced(slow, 50_000)
    with running.client(client_id="slow") as second:
        assert produced(second, 10).throttle_time_ms > LONG_MS


def test_a_throttled_fetch_is_answered_without_records(running: RunningBroker, client: WireClient) -> None:
    create_topic(client, "t")
    produce(client, "t", *[b"x" * 1000] * 50)
    set_quota(client, "consumer_byte_rate", 1000, user=USER)
    with running.client() as second, running.client() as third:
        answer = second.ask(fetch_request("t", 0), 12)
        assert (answer.error_code, answer.responses) == (ErrorCode.NONE, [])
        assert answer.throttle_time_ms > LONG_MS
        second.send(METADATA)
        # What was not sent is not charged.
        again = third.ask(fetch_request("t", 0), 12)
        assert abs(again.throttle_time_ms - answer.throttle_time_ms) < LONG_MS / 2
        assert second.is_quiet()
    set_quota(client, "consumer_byte_rate", None, user=USER)
    assert len(records(client)) == 50


def test_a_fetch_gets_no_more_than_may_be_sent_at_once(client: WireClient) -> None:
    create_topic(client, "t")
    for _ in range(20):
        produce(client, "t", b"x" * 1000)
    set_quota(client, "consumer_byte_rate", 1000, user=USER)
    answer = client.ask(fetch_request("t", 0), 12)
    assert answer.throttle_time_ms == 0
    assert 8000 < len(answer.responses[0].partitions[0].records) < 10_000


def test_a_fetch_that_waits_is_charged_when_it_is_answered(running: RunningBroker, client: WireClient) -> None:
    create_topic(client, "t")
    set_quota(client, "consumer_byte_rate", 1000, client_id="reader")
    with running.client(client_id="reader") as reader:
        reader.send(fetch_request("t", 0, max_wait_ms=600_000), 12)
        until(lambda: len(running.broker.waiters) == 1)
        produce(client, "t", b"x" * 50_000)
        assert reader.receive().throttle_time_ms > LONG_MS
        reader.send(METADATA)
        assert reader.is_quiet()


def test_a_throttled_share_fetch_has_the_records_that_it_acquired(running: RunningBroker, client: WireClient) -> None:
    topic_id = create_topic(client, "t").topic_id
    begin_share_group(running, topic_id)
    produce(client, "t", *[b"x" * 1000] * 50)
    set_quota(client, "consumer_byte_rate", 1000, client_id="reader")
    with running.client(client_id="reader") as reader:
        answer = reader.ask(ShareMember(reader, "g", "m1", (topic_id, 0)).request())
        (row,) = answer.responses[0].partitions
        assert len(values_of(row)) == 50
        assert answer.throttle_time_ms > LONG_MS
        reader.send(METADATA)
        assert reader.is_quiet()


def test_the_time_of_requests_is_limited(running: RunningBroker, client: WireClient) -> None:
    set_quota(client, "request_percentage", 1e-9, client_id="busy")
    with running.client(client_id="busy") as busy:
        # Kafka throttles for one window of one second at most.
        assert busy.ask(METADATA).throttle_time_ms == 1000
        busy.send(METADATA)
        assert busy.is_quiet()


def test_a_slice_of_a_long_request_counts_as_time(running: RunningBroker, client: WireClient) -> None:
    topics = [
        CreateTopicsRequest.Topic(name=f"t{number}", num_partitions=1, replication_factor=1, assignments=[], configs=[])
        for number in range(200)
    ]
    set_quota(client, "request_percentage", 1e-9, client_id="busy")
    with running.client(client_id="busy") as busy:
        answer = busy.ask(CreateTopicsRequest(topics=topics))
    assert answer.throttle_time_ms == 1000
    assert {row.error_code for row in answer.topics} == {ErrorCode.NONE}


def test_created_and_deleted_partitions_are_limited(running: RunningBroker, client: WireClient) -> None:
    set_quota(client, "controller_mutation_rate", 0.1, client_id="eager")

    def asked(request: Any, version: int | None = None) -> Any:
        # A throttled connection is muted.
        with running.client(client_id="eager") as eager:
            return eager.ask(request, version)

    def create(name: str, version: int | None = None) -> Any:
        topic = CreateTopicsRequest.Topic(name=name, num_partitions=3, replication_factor=1, assignments=[], configs=[])
        answer = asked(CreateTopicsRequest(topics=[topic]), version)
        return answer.topics[0].error_code, answer.throttle_time_ms > 0

    assert create("first") == (ErrorCode.NONE, False)
    assert create("second") == (ErrorCode.THROTTLING_QUOTA_EXCEEDED, True)
    more = CreatePartitionsRequest(
        topics=[CreatePartitionsRequest.Topic(name="first", count=4, assignments=None)], timeout_ms=1000
    )
    assert asked(more).results[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    delete = DeleteTopicsRequest(topics=[DeleteTopicsRequest.Topic(name="first", topic_id=NO_TOPIC)], timeout_ms=1000)
    assert asked(delete).responses[0].error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    # Old versions cannot say so: they are only throttled.
    assert create("third", 5) == (ErrorCode.NONE, True)


def test_quotas_are_kept_by_a_restart(running: RunningBroker, client: WireClient) -> None:
    set_quota(client, "producer_byte_rate", 1000, user="alice", client_id=None)
    set_quota(client, "request_percentage", 0.5, user="alice", client_id=None)
    set_quota(client, "consumer_byte_rate", 7, user="bob")
    set_quota(client, "consumer_byte_rate", 7, client_id="slow")
    set_quota(client, "consumer_byte_rate", None, user="bob")
    before = quotas_of(client)
    assert before == {
        (("client-id", None), ("user", "alice")): {"producer_byte_rate": 1000, "request_percentage": 0.5},
        (("client-id", "slow"),): {"consumer_byte_rate": 7},
    }
    running.restart()
    with running.client(client_id="slow") as slow:
        assert quotas_of(slow) == before
        create_topic(slow, "t")
        produce(slow, "t", b"x" * 1000)
        assert slow.ask(fetch_request("t", 0), 12).throttle_time_ms > LONG_MS


def test_a_checked_change_is_not_made(client: WireClient) -> None:
    entry = AlterClientQuotasRequest.Entry(
        entity=[AlterClientQuotasRequest.Entity(entity_type="user", entity_name="alice")],
        ops=[AlterClientQuotasRequest.Op(key="producer_byte_rate", value=1.0)],
    )
    (row,) = client.ask(AlterClientQuotasRequest(entries=[entry], validate_only=True)).entries
    assert row.error_code == ErrorCode.NONE
    assert quotas_of(client) == {}


ends = pytest.mark.parametrize("end", [close, reset, half_close])


def expect_gone(running: RunningBroker) -> None:
    """Wait until one connection is left, and nothing of the other."""
    until(lambda: len(running.broker.connections) == 1)
    assert running.run(lambda: len(running.broker.connections.hangups)) == 0
    assert running.run(lambda: running.broker.connections.held.total) == 0


def bytes_until_closed(client: WireClient) -> int:
    count = 0
    while data := client.socket.recv(1 << 20):
        count += len(data)
    return count


@ends
@pytest.mark.parametrize("size", [0, 1000, 3 << 20])
def test_the_end_of_a_muted_client_is_noticed(
    running: RunningBroker, client: WireClient, slow: WireClient, end: Callable[[WireClient], None], size: int
) -> None:
    produced(slow, 50_000)
    flood(slow, size)
    end(slow)
    if end is half_close:
        # Requests before the end are answered: there is nothing left to slow down.
        assert bytes_until_closed(slow) >= size
    expect_gone(running)


@ends
def test_the_end_is_noticed_while_the_broker_does_not_read_from_a_muted_client(
    running: RunningBroker,
    client: WireClient,
    slow: WireClient,
    end: Callable[[WireClient], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(held_bytes, "QUEUE_BYTES", 1)
    produced(slow, 50_000)
    flood(slow, 100_000)
    until(lambda: running.run(lambda: len(running.broker.connections.hangups)) == 1)
    end(slow)
    if end is half_close:
        assert bytes_until_closed(slow) > 0
    expect_gone(running)


def test_a_muted_client_cannot_fill_the_memory(running: RunningBroker, slow: WireClient) -> None:
    produced(slow, 50_000)
    flood(slow, 60_000_000)
    held = running.run(lambda: running.broker.connections.held.total)
    assert held_bytes.QUEUE_BYTES // 2 < held < held_bytes.QUEUE_BYTES + READ_BYTES * 2


def test_a_muted_client_does_not_delay_the_stop(running: RunningBroker, slow: WireClient) -> None:
    produced(slow, 50_000)
    slow.send(METADATA)
    running.stop()
    assert slow.is_closed()


def test_a_muted_client_is_not_idle(tmp_path: Path) -> None:
    with RunningBroker(tmp_path / "data", connections_max_idle_ms="100") as running, running.client() as client:
        create_topic(client, "t")
        set_quota(client, "producer_byte_rate", 1000, client_id="slow")
        with running.client(client_id="slow") as slow:
            answer = produced(slow, 10_400)
            assert 300 < answer.throttle_time_ms < 2000
            slow.send(METADATA)
            assert slow.receive().throttle_time_ms == 0


def test_an_address_that_connects_too_often_is_refused(running: RunningBroker, client: WireClient) -> None:
    set_quota(client, "connection_creation_rate", 1, ip="127.0.0.1")

    def is_served() -> bool:
        with running.client() as other, contextlib.suppress(ConnectionClosed, BrokenPipeError):
            return bool(other.ask(METADATA).brokers)
        return False

    assert [is_served() for _ in range(15)].count(True) in (10, 11)
    # Those that are open stay open.
    set_quota(client, "connection_creation_rate", None, ip="127.0.0.1")
    assert is_served()


def test_an_authenticated_user_has_the_quota_of_its_name_and_authentication_is_free(tmp_path: Path) -> None:
    listeners = "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"
    users = sorted(sasl.USERS.items())[:2]
    with (
        RunningBroker(tmp_path / "data", listeners=listeners, **sasl.options_of("sasl_plaintext")) as running,
        running.client("PLAINTEXT") as client,
    ):
        create_topic(client, "t")
        set_quota(client, "producer_byte_rate", 1000, user=users[0][0])
        # The quota of clients that have not authenticated does not slow down their authentication.
        set_quota(client, "request_percentage", 1e-9, user=USER, client_id="test")
        throttles = []
        for name, password in users:
            with running.client("SASL_PLAINTEXT") as connected:
                assert sasl.handshake("PLAIN")(connected) == "0"
                assert sasl.token(f"\0{name}\0{password}".encode())(connected) == "0"
                throttles.append(produced(connected, 50_000).throttle_time_ms)
    assert throttles[0] > LONG_MS
    assert throttles[1] == 0
