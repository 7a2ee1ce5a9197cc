"""Produce: acks, versions and errors per partition."""

from __future__ import annotations

from typing import Any

import pytest

from broker.protocol.compression import Codec
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.fetch import FetchRequest
from broker.protocol.messages.init_producer_id import InitProducerIdRequest
from broker.protocol.messages.produce import ProduceRequest
from broker.server import gradual
from tests.harness.requests import batch, create_topic, fetch, produce, produce_request, values_of
from tests.harness.running import RunningBroker, until
from tests.harness.wire_client import WireClient


def row_of(answer: Any) -> Any:
    return answer.responses[0].partition_responses[0]


def test_every_version_appends(client: WireClient) -> None:
    topic_id = create_topic(client, "t").topic_id
    request = produce_request("t", batch(b"a", b"b"))
    request.topic_data[0].topic_id = topic_id
    for appended, version in enumerate(ProduceRequest.VERSIONS):
        answer = client.ask(request, version)
        (topic,) = answer.responses
        assert topic.topic_id == topic_id if version >= 13 else topic.name == "t"
        (row,) = topic.partition_responses
        assert (row.error_code, row.base_offset, row.log_append_time_ms) == (ErrorCode.NONE, 2 * appended, -1)
        assert row.log_start_offset == (0 if version >= 5 else -1)


@pytest.mark.parametrize("acks", [1, -1])
def test_an_acknowledged_record_can_be_read_at_once(client: WireClient, acks: int) -> None:
    create_topic(client, "t")

    row = row_of(client.ask(produce_request("t", batch(b"x"), acks=acks), 12))

    assert row.error_code == ErrorCode.NONE
    assert values_of(fetch(client, "t", 0)) == [b"x"]


def test_acks_0_gets_no_answer_and_later_requests_do(client: WireClient) -> None:
    create_topic(client, "t")
    client.send_bytes(client.frame(produce_request("t", batch(b"quiet"), acks=0), 12, answered=False))

    assert until(lambda: values_of(fetch(client, "t", 0))) == [b"quiet"]


def test_acks_0_that_fails_closes_the_connection(client: WireClient) -> None:
    client.send(produce_request("absent", batch(b"x"), acks=0), 12)

    assert client.is_closed()


@pytest.mark.parametrize("acks", [2, -2])
def test_other_acks_are_refused(client: WireClient, acks: int) -> None:
    create_topic(client, "t")

    row = row_of(client.ask(produce_request("t", batch(b"x"), acks=acks), 12))

    assert (row.error_code, row.base_offset) == (ErrorCode.INVALID_REQUIRED_ACKS, -1)
    assert values_of(fetch(client, "t", 0)) == []


def test_each_partition_gets_its_own_error(client: WireClient) -> None:
    create_topic(client, "t", max_message_bytes="200")
    damaged = bytearray(batch(b"x"))
    damaged[-1] ^= 1
    rows = [
        ("t", 0, batch(b"fine"), ErrorCode.NONE),
        ("t", 1, batch(b"x"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("absent", 0, batch(b"x"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", 0, bytes(damaged), ErrorCode.CORRUPT_MESSAGE),
        ("t", 0, batch(b"x" * 300), ErrorCode.MESSAGE_TOO_LARGE),
        ("t", 0, b"", ErrorCode.INVALID_RECORD),
        ("t", 0, None, ErrorCode.INVALID_RECORD),
        ("t", 0, batch(b"a") + batch(b"b"), ErrorCode.INVALID_RECORD),
        ("t", 0, batch(b"x", timestamp=4102444800000), ErrorCode.INVALID_TIMESTAMP),
        ("__consumer_offsets", 0, batch(b"x"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("__kgctl_group_events", 0, batch(b"x"), ErrorCode.INVALID_TOPIC_EXCEPTION),
    ]
    request = ProduceRequest(
        acks=-1,
        timeout_ms=1000,
        topic_data=[
            ProduceRequest.Topic(name=name, partition_data=[ProduceRequest.Partition(index=index, records=records)])
            for name, index, records, _ in rows
        ],
    )

    answer = client.ask(request, 12)

    assert [topic.partition_responses[0].error_code for topic in answer.responses] == [code for *_, code in rows]
    assert values_of(fetch(client, "t", 0)) == [b"fine"]


def test_an_unknown_topic_id_is_an_error(client: WireClient) -> None:
    request = produce_request("", batch(b"x"))
    request.topic_data[0].topic_id = bytes(15) + b"\7"

    row = row_of(client.ask(request, 13))

    assert row.error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_zstd_needs_version_7(client: WireClient) -> None:
    create_topic(client, "t")
    request = produce_request("t", batch(b"x", codec=Codec.ZSTD))

    assert row_of(client.ask(request, 6)).error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert row_of(client.ask(request, 7)).error_code == ErrorCode.NONE


def test_a_producer_id_is_assigned_once(running: RunningBroker) -> None:
    asked = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
    seen = []
    for _ in range(2):
        with running.client() as client:
            for version in range(6):
                answer = client.ask(asked, version)
                assert (answer.error_code, answer.producer_epoch) == (ErrorCode.NONE, 0)
                seen.append(answer.producer_id)
        running.restart()
    assert len(set(seen)) == len(seen)


def test_a_producer_id_without_its_epoch_is_an_invalid_request(client: WireClient) -> None:
    asked = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0, producer_id=5)

    assert client.ask(asked).error_code == ErrorCode.INVALID_REQUEST


def test_an_idempotent_retry_gets_the_first_answer_again_also_after_a_restart(running: RunningBroker) -> None:
    records = batch(b"once", producer_id=0, producer_epoch=0, base_sequence=0)
    with running.client() as client:
        create_topic(client, "t")
        produce(client, "t", b"before")
        first = row_of(client.ask(produce_request("t", records), 12))
        again = row_of(client.ask(produce_request("t", records), 12))
    running.restart()
    with running.client() as client:
        late = row_of(client.ask(produce_request("t", records), 12))
        rows = values_of(fetch(client, "t", 0))

    assert [(row.error_code, row.base_offset) for row in (first, again, late)] == [(ErrorCode.NONE, 1)] * 3
    assert rows == [b"before", b"once"]


def test_a_large_request_is_answered_for_each_partition_in_order(client: WireClient) -> None:
    for name, count in (("a", 25), ("b", 3), ("c", 15)):
        create_topic(client, name, count)
    asked = {"a": [*range(25)], "b": [2, 2, 7], "none": [0], "c": [*reversed(range(15))]}
    rows = {
        name: [ProduceRequest.Partition(index=index, records=batch(b"x")) for index in indexes]
        for name, indexes in asked.items()
    }
    topics = [ProduceRequest.Topic(name=name, partition_data=parts) for name, parts in rows.items()]
    topics.insert(1, ProduceRequest.Topic(name="c", partition_data=[]))

    answered = client.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics), 12).responses

    assert [topic.name for topic in answered] == ["a", "c", "b", "none", "c"]
    assert not answered[1].partition_responses
    found = {topic.name: topic.partition_responses for topic in answered}
    assert {name: [row.index for row in rows] for name, rows in found.items()} == asked
    assert [(row.error_code, row.base_offset) for row in found["b"]] == [(0, 0), (0, 1), (3, -1)]
    assert [row.error_code for row in found["none"]] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert {(row.error_code, row.base_offset) for name in ("a", "c") for row in found[name]} == {(0, 0)}


def test_other_clients_are_served_before_a_large_request_ends(
    running: RunningBroker, client: WireClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gradual, "TURN_S", 0.0)
    count = 100
    create_topic(client, "t", count)
    rows = [ProduceRequest.Partition(index=index, records=batch(b"x")) for index in range(count)]
    request = ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[ProduceRequest.Topic(name="t", partition_data=rows)])
    parts = [
        FetchRequest.Partition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20) for index in range(count)
    ]
    waiting = FetchRequest(
        max_wait_ms=30_000,
        min_bytes=1,
        max_bytes=1 << 20,
        topics=[FetchRequest.Topic(topic="t", partitions=parts)],
    )
    with running.client() as reader:
        reader.send(waiting, 12)
        assert until(lambda: running.run(lambda: len(running.broker.waiters)))
        client.send(request, 12)
        fetched = sum(bool(row.records) for row in reader.receive().responses[0].partitions)
        produced = client.receive().responses[0].partition_responses

    assert [(row.index, row.error_code) for row in produced] == [(index, ErrorCode.NONE) for index in range(count)]
    assert 0 < fetched < count
