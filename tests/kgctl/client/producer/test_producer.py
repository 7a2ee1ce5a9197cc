"""The blocking producer on running clusters, ours and Kafka; librdkafka reads what it writes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from kgctl.client.config.option import BadOption
from kgctl.client.consumer.offset_and_metadata import OffsetAndMetadata
from kgctl.client.net.errors import BadValue, InsideCallback, KgctlError, NotFound, TimedOut
from kgctl.client.producer.core.batch import RecordMetadata
from kgctl.client.producer.core.errors import (
    BufferFull,
    ProducerClosed,
    ProducerFenced,
    RecordTooLarge,
    TransactionAbortable,
    WrongState,
)
from kgctl.client.producer.interceptors import ProducerInterceptor, ProducerRecord
from kgctl.client.producer.producer import Producer
from kgctl.model.topic_partition import TopicPartition
from tests.harness.clusters import Cluster, fresh
from tests.harness.streaming import records_of

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def made(cluster: Cluster, partitions: int = 1, **config: str) -> str:
    topic = fresh("produced")
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic(topic, partitions, 1, config=config)])[topic].result(30)
    return topic


def replace(cluster: Cluster, topic: str) -> None:
    """Delete a topic and create it again."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.delete_topics([topic])[topic].result(30)
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)


def committed(cluster: Cluster, topic: str) -> list[bytes]:
    """What a read_committed reader of librdkafka sees in partition 0."""
    options = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": fresh("g"), "enable.partition.eof": True}
    consumer = ck.Consumer({**options, "isolation.level": "read_committed", "auto.offset.reset": "earliest"})
    try:
        consumer.assign([ck.TopicPartition(topic, 0, 0)])
        seen: list[bytes] = []
        while True:
            message = consumer.poll(30)
            assert message is not None
            if message.error():
                assert message.error().code() == ck.KafkaError._PARTITION_EOF, message.error()
                return seen
            seen.append(message.value())
    finally:
        consumer.close()


@pytest.fixture
def producer(cluster: Cluster) -> Iterator[Producer]:
    with Producer(bootstrap_servers=cluster.bootstrap_servers) as producer:
        yield producer


@pytest.mark.parametrize("codec", CODECS)
def test_librdkafka_reads_keys_values_headers_nulls_and_times(cluster: Cluster, codec: str) -> None:
    topic = made(cluster)
    headers = [("a", b"1"), ("a", None), ("\u00fc", b"")]
    with Producer(bootstrap_servers=cluster.bootstrap_servers, compression_type=codec, linger_ms=50) as producer:
        sent = [
            producer.send(topic, b"v" * 1000, b"k", timestamp_ms=1_700_000_000_123, headers=headers),
            producer.send(topic, None, b"gone"),
            producer.send(topic, "text", ""),
            producer.send(topic, bytearray(b"array")),
        ]
        assert [one.result(30).offset for one in sent] == [0, 1, 2, 3]
    seen = records_of(cluster.bootstrap_servers, topic, 0, 4)
    assert [(one.key(), one.value()) for one in seen] == [
        (b"k", b"v" * 1000),
        (b"gone", None),
        (b"", b"text"),
        (None, b"array"),
    ]
    assert seen[0].headers() == headers
    assert seen[0].timestamp() == (1, 1_700_000_000_123)


@pytest.mark.parametrize("acks", ["all", 1, 0])
def test_each_kind_of_acknowledgement(cluster: Cluster, acks: str | int) -> None:
    topic = made(cluster)
    with Producer(bootstrap_servers=cluster.bootstrap_servers, acks=acks) as producer:
        assert producer.send(topic, b"a").result(30).offset == (-1 if acks == 0 else 0)
    assert [one.value() for one in records_of(cluster.bootstrap_servers, topic, 0, 1)] == [b"a"]


def test_threads_share_a_producer_and_each_keeps_its_order(cluster: Cluster, producer: Producer) -> None:
    topic = made(cluster, 2)

    def write(number: int) -> None:
        for index in range(500):
            producer.send(topic, b"%d:%d" % (number, index), partition=number % 2)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    producer.flush(60)
    for partition in (0, 1):
        seen = [one.value().split(b":") for one in records_of(cluster.bootstrap_servers, topic, partition, 1000)]
        for number in (partition, partition + 2):
            assert [int(index) for who, index in seen if int(who) == number] == list(range(500))


def test_callbacks_and_interceptors_get_the_outcome_in_order(cluster: Cluster) -> None:
    topic = made(cluster)
    seen: list[tuple[str, int, str | None]] = []

    class Recorder(ProducerInterceptor):
        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            return record._replace(value=record.value + b"!")

        def on_acknowledgement(self, metadata: RecordMetadata, error: KgctlError | None) -> None:
            seen.append(("interceptor", metadata.offset, None if error is None else error.name))

    class Broken(ProducerInterceptor):
        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            raise ValueError

    def delivered(metadata: RecordMetadata, error: KgctlError | None) -> None:
        seen.append(("callback", metadata.offset, None if error is None else error.name))

    options: dict[str, Any] = {"bootstrap_servers": cluster.bootstrap_servers, "max_request_size": 2000}
    with Producer(**options, interceptors=[Broken(), Recorder()]) as producer:
        producer.send(topic, b"a", on_delivery=delivered)
        producer.send(topic, b"b", on_delivery=delivered)
        producer.flush(30)
        with pytest.raises(RecordTooLarge):
            producer.send(topic, b"x" * 3000)
    kinds = [("interceptor", 0, None), ("callback", 0, None), ("interceptor", 1, None), ("callback", 1, None)]
    assert seen == [*kinds, ("interceptor", -1, "RECORD_TOO_LARGE")]
    assert [one.value() for one in records_of(cluster.bootstrap_servers, topic, 0, 2)] == [b"a!", b"b!"]


def test_serializers_and_partitioners_of_users_are_called(cluster: Cluster) -> None:
    topic = made(cluster, 3)
    with Producer(
        bootstrap_servers=cluster.bootstrap_servers,
        key_serializer=lambda topic, key: key and str(key).encode(),
        value_serializer=lambda topic, value: topic.encode() + value,
        partitioner=lambda topic, key, value, partitions: partitions.total - 1,
    ) as producer:
        assert producer.send(topic, b"v", 7).result(30).partition == 2
    (message,) = records_of(cluster.bootstrap_servers, topic, 2, 1)
    assert (message.key(), message.value()) == (b"7", topic.encode() + b"v")


def test_a_new_partition_is_used_without_an_error_first(cluster: Cluster, producer: Producer) -> None:
    topic = made(cluster)
    assert producer.send(topic, b"a").result(30).partition == 0
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result(30)
    assert producer.send(topic, b"b", partition=2).result(30).partition == 2
    assert {info.partition for info in producer.partitions_for(topic)} == {0, 1, 2}


def test_a_partition_that_a_topic_does_not_have_is_refused_after_a_while(cluster: Cluster) -> None:
    topic = made(cluster)
    with (
        Producer(bootstrap_servers=cluster.bootstrap_servers, max_block_ms=500) as producer,
        pytest.raises(NotFound) as raised,
    ):
        producer.send(topic, b"a", partition=5)
    expected = (
        f"topic {topic!r} has no partition 5: it has 1, numbered from 0; none was added within 0.5 s (max.block.ms)"
    )
    assert str(raised.value) == expected


@pytest.mark.parametrize(
    ("topic", "name"), [("no/such", "INVALID_TOPIC_EXCEPTION"), ("x" * 300, "INVALID_TOPIC_EXCEPTION")]
)
def test_a_topic_that_cannot_exist_is_refused_at_once(producer: Producer, topic: str, name: str) -> None:
    with pytest.raises(KgctlError) as raised:
        producer.send(topic, b"a")
    assert raised.value.name == name


def test_a_transaction_is_seen_whole_or_not_at_all(cluster: Cluster) -> None:
    topic, name = made(cluster), fresh("tx")
    group = fresh("group")
    with Producer(bootstrap_servers=cluster.bootstrap_servers, transactional_id=name) as producer:
        producer.init_transactions()
        for number in range(4):
            producer.begin_transaction()
            sent = [producer.send(topic, b"%d-%d" % (number, index)) for index in range(3)]
            if number % 2:
                producer.flush(30)
                producer.abort_transaction()
            else:
                offsets = {TopicPartition(topic, 0): OffsetAndMetadata(number, metadata="m")}
                producer.send_offsets_to_transaction(offsets, group)
                producer.commit_transaction()
                assert all(one.done() for one in sent)
        producer.begin_transaction()
        producer.send(topic, b"open")
        producer.flush(30)
    assert committed(cluster, topic) == [b"%d-%d" % (number, index) for number in (0, 2) for index in range(3)]
    consumer = ck.Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": group})
    (found,) = consumer.committed([ck.TopicPartition(topic, 0)], 30)
    consumer.close()
    assert found.offset == 2


def test_offsets_of_a_transaction_may_be_numbers_and_nothing_else(cluster: Cluster) -> None:
    one, group = TopicPartition(made(cluster), 0), fresh("group")
    with Producer(bootstrap_servers=cluster.bootstrap_servers, transactional_id=fresh("tx")) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        with pytest.raises(BadValue, match="'2' is not an offset"):
            producer.send_offsets_to_transaction({one: "2"}, group)  # type: ignore[dict-item]
        producer.send_offsets_to_transaction({one: 2}, group)
        producer.commit_transaction()
    consumer = ck.Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": group})
    (found,) = consumer.committed([ck.TopicPartition(*one)], timeout=30)
    consumer.close()
    assert found.offset == 2


def test_a_newer_producer_fences_an_older_one(cluster: Cluster) -> None:
    topic, name = made(cluster), fresh("tx")
    options: dict[str, Any] = {"bootstrap_servers": cluster.bootstrap_servers, "transactional_id": name}
    with Producer(**options) as older, Producer(**options) as newer:
        older.init_transactions()
        older.begin_transaction()
        older.send(topic, b"lost").result(30)
        newer.init_transactions()
        late = older.send(topic, b"late")
        assert late.exception(30) is not None
        with pytest.raises((ProducerFenced, TransactionAbortable)):
            older.commit_transaction()
        with pytest.raises(ProducerFenced):
            older.abort_transaction()
        newer.begin_transaction()
        newer.send(topic, b"kept")
        newer.commit_transaction()
    assert committed(cluster, topic) == [b"kept"]


def test_a_failed_record_must_be_aborted_before_the_next_transaction(cluster: Cluster) -> None:
    topic = made(cluster, 1, **{"max.message.bytes": "1000"})
    with Producer(bootstrap_servers=cluster.bootstrap_servers, transactional_id=fresh("tx")) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        failed = producer.send(topic, b"x" * 5000)
        with pytest.raises(TransactionAbortable, match="MESSAGE_TOO_LARGE"):
            producer.commit_transaction()
        assert failed.exception() is not None
        with pytest.raises(TransactionAbortable):
            producer.send(topic, b"late")
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send(topic, b"good")
        producer.commit_transaction()
    assert committed(cluster, topic) == [b"good"]


# --- without a cluster that helps ---


def test_nothing_waits_longer_than_it_may(our_cluster: Cluster) -> None:
    topic = made(our_cluster)
    options: dict[str, Any] = {"bootstrap_servers": "127.0.0.1:1", "max_block_ms": 100}
    with Producer(**options) as producer:
        with pytest.raises(TimedOut, match=r"no metadata within 0\.1 s: 127\.0\.0\.1:1: connection refused"):
            producer.send(topic, b"a")
        with pytest.raises(TimedOut, match=r"no metadata within 0\.05 s: 127\.0\.0\.1:1: connection refused"):
            producer.partitions_for(topic, 0.05)
    with Producer(**options, transactional_id="tx") as producer:
        with pytest.raises(TimedOut, match=r"init_transactions: no answer within 0\.1 s \(127\.0\.0\.1:1: connection"):
            producer.init_transactions()
        with pytest.raises(WrongState, match="init_transactions has timed out before"):
            producer.begin_transaction()


def test_a_full_buffer_makes_send_wait_and_then_fail() -> None:
    from broker.local import LocalBroker

    with LocalBroker() as broker:
        options: dict[str, Any] = {"max_block_ms": 200, "buffer_memory": 40_000, "linger_ms": 0}
        with Producer(bootstrap_servers=broker.bootstrap_servers, **options) as producer:
            producer.send("t", b"x").result(30)
            broker.kill()
            sent = [producer.send("t", b"x" * 10_000) for _ in range(2)]
            with pytest.raises(BufferFull, match=r"buffer\.memory"):
                producer.send("t", b"x" * 10_000)
            assert producer.metrics()["buffer-available-bytes"] < 16_384
            producer.close(0)
            assert all(isinstance(one.exception(), ProducerClosed) for one in sent)


def test_a_broker_that_is_killed_twice_gets_every_record_once_and_in_order(own_cluster: Cluster) -> None:
    topic = made(own_cluster)
    with Producer(bootstrap_servers=own_cluster.bootstrap_servers, batch_size=2000, retry_backoff_ms=20) as producer:
        sent = []
        for number in range(6000):
            if number in (2000, 4000):
                sent[-500].result(60)
                own_cluster.kill()
                own_cluster.restart()
            sent.append(producer.send(topic, b"%d" % number))
        assert [one.result(60).offset for one in sent][-1] == 5999
    seen = records_of(own_cluster.bootstrap_servers, topic, 0, 6000)
    assert [one.value() for one in seen] == [b"%d" % number for number in range(6000)]


def test_a_closed_producer_refuses_and_closes_again(our_cluster: Cluster) -> None:
    topic = made(our_cluster)
    producer = Producer(bootstrap_servers=our_cluster.bootstrap_servers, linger_ms=60_000)
    delivery = producer.send(topic, b"a")
    closed: list[bool] = []
    delivery.add_done_callback(lambda _: closed.append(producer.close() is None))
    producer.close(30)
    assert delivery.result(0).offset == 0
    assert closed == [True]
    producer.close()
    for call in (lambda: producer.send(topic, b"b"), producer.flush, producer.begin_transaction):
        with pytest.raises(ProducerClosed):
            call()


def test_a_wait_inside_of_a_callback_is_refused_rather_than_endless(our_cluster: Cluster) -> None:
    topic = made(our_cluster)
    seen: list[str] = []
    with Producer(bootstrap_servers=our_cluster.bootstrap_servers) as producer:

        def callback(metadata: RecordMetadata, error: KgctlError | None) -> None:
            try:
                producer.send(topic, b"next")
                producer.flush(10)
            except InsideCallback as error_:
                seen.append(str(error_))

        producer.send(topic, b"a", on_delivery=callback)
        producer.flush(30)
        assert "a callback cannot wait for its own client: it runs in the client's thread" in seen[0]
        end = time.monotonic() + 30
        while producer.metrics()["record-send-total"] < 2:
            assert time.monotonic() < end
            producer.flush(30)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"acks": 1, "enable_idempotence": True}, "enable.idempotence: it needs acks=all"),
        ({"retries": 0, "enable_idempotence": True}, "enable.idempotence: it needs retries above 0"),
        ({"max_in_flight_requests_per_connection": 6, "enable_idempotence": True}, "of at most 5"),
        ({"acks": 0, "transactional_id": "tx"}, "transactional.id: it needs acks=all"),
        ({"enable_idempotence": False, "transactional_id": "tx"}, "transactional.id: it needs enable.idempotence"),
        ({"delivery_timeout_ms": 1000}, "at least linger.ms"),
        ({"linger": 5}, "linger: unknown option"),
        ({"compression_type": "brotli"}, "compression.type"),
        ({"interceptor_classes": ["no.such:thing"]}, "interceptor.classes: cannot load 'no.such:thing'"),
        ({"transaction_two_phase_commit_enable": True}, "it is not supported"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(BadOption, match=text):
        Producer(bootstrap_servers="127.0.0.1:1", **options)


@pytest.mark.parametrize(
    ("options", "is_idempotent"),
    [
        ({}, True),
        ({"acks": "1"}, False),
        ({"retries": 0}, False),
        ({"max_in_flight_requests_per_connection": 6}, False),
    ],
)
def test_idempotence_gives_way_to_other_options(options: dict[str, Any], is_idempotent: bool) -> None:
    with Producer(bootstrap_servers="127.0.0.1:1", **options) as producer:
        assert (producer._face.core.producer is not None) is is_idempotent


def test_properties_have_kafkas_names(our_cluster: Cluster) -> None:
    topic = made(our_cluster)
    properties = {
        "bootstrap.servers": our_cluster.bootstrap_servers,
        "linger.ms": "0",
        "partitioner.class": "round-robin",
        "group.id": "of a consumer",
    }
    with Producer.from_properties(properties) as producer:
        assert producer.send(topic, b"a", b"k").result(30).offset == 0


def test_a_record_that_no_request_can_carry_is_refused_and_harms_no_other(our_cluster: Cluster) -> None:
    topic: Any = made(our_cluster)
    bad: list[tuple[Any, dict[str, Any]]] = [
        (b"a", {}),
        ("", {}),
        ("a" * 40_000, {}),
        (topic, {"timestamp_ms": 2**70}),
        (topic, {"timestamp_ms": -1}),
        (topic, {"timestamp_ms": 1.5}),
        (topic, {"partition": -1}),
    ]
    with Producer(bootstrap_servers=our_cluster.bootstrap_servers) as producer:
        for name, options in bad:
            with pytest.raises(BadValue):
                producer.send(name, b"v", **options)
        with pytest.raises(BadValue):
            producer.partitions_for("a" * 40_000)
        assert producer.send(topic, b"v").result(30).offset == 0


def test_what_is_not_bytes_needs_a_serializer(our_cluster: Cluster) -> None:
    with Producer(bootstrap_servers=our_cluster.bootstrap_servers) as producer:
        with pytest.raises(BadValue, match="a value must be bytes, text or None, not int: pass value_serializer"):
            producer.send("t", 5)
        with pytest.raises(BadValue, match="the name of a header must be text"):
            producer.send("t", b"", headers=[(b"a", b"b")])  # type: ignore[list-item]


def test_a_flush_that_ends_early_leaves_lingering_as_it_was() -> None:
    from broker.local import LocalBroker

    with LocalBroker() as broker, Producer(bootstrap_servers=broker.bootstrap_servers, linger_ms=60_000) as producer:
        producer.send("t", b"a")
        broker.kill()
        with pytest.raises(TimedOut, match="flush: not all records are acknowledged"):
            producer.flush(0.05)
        broker.restart()
        producer.send("t", b"b").done()
        producer.flush(60)
        assert producer.metrics()["record-error-total"] == 0


def test_records_are_written_to_a_topic_that_was_deleted_and_created_again(cluster: Cluster) -> None:
    topic = made(cluster)
    with Producer(bootstrap_servers=cluster.bootstrap_servers) as producer:
        assert [producer.send(topic, b"old").result(30).offset for _ in range(3)] == [0, 1, 2]
        replace(cluster, topic)
        sent = [producer.send(topic, b"%d" % number) for number in range(4)]
        assert [one.result(30).offset for one in sent] == [0, 1, 2, 3]
    values = [one.value() for one in records_of(cluster.bootstrap_servers, topic, 0, 4)]
    assert values == [b"0", b"1", b"2", b"3"]
