"""The blocking consumer on running clusters, with records that librdkafka wrote."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

import pytest

from kgctl.client.config.option import BadOption
from kgctl.client.consumer.consumer import Consumer
from kgctl.client.consumer.consumer_record import ConsumerRecord
from kgctl.client.consumer.errors import (
    ConcurrentUse,
    ConsumerClosed,
    DeserializationFailed,
    MixedSubscription,
    NoGroup,
    NoOffsetForPartition,
    NotAssigned,
    NotSubscribed,
    OffsetOutOfRange,
    WakeupError,
)
from kgctl.client.consumer.interceptors import ConsumerInterceptor
from kgctl.client.consumer.offset_and_metadata import OffsetAndMetadata
from kgctl.client.consumer.rebalance_listener import RebalanceListener
from kgctl.client.net.errors import BadValue, KgctlError, NotFound, TimedOut
from kgctl.model.topic_partition import TopicPartition
from tests.harness.clusters import Cluster, fresh
from tests.kgctl.client.consumer.conftest import Write
from tests.kgctl.client.producer.test_producer import replace

SECONDS = 30.0


def consumer_of(cluster: Cluster, **options: Any) -> Consumer:
    return Consumer(
        **{"bootstrap_servers": cluster.bootstrap_servers, "auto_offset_reset": "earliest", "fetch_max_wait_ms": 50}
        | options
    )


def read(consumer: Consumer, count: int) -> list[ConsumerRecord]:
    """Poll until there are so many records."""
    out: list[ConsumerRecord] = []
    until = time.monotonic() + SECONDS
    while len(out) < count and time.monotonic() < until:
        out += consumer.poll(1.0)
    return out


def wait_for(consumer: Consumer, condition: Callable[[], bool]) -> None:
    until = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < until
        assert consumer.poll(0.05) == []


def numbers(count: int) -> list[bytes]:
    return [str(number).encode() for number in range(count)]


def test_a_group_member_reads_all_partitions_and_continues_where_it_committed(cluster: Cluster, write: Write) -> None:
    topic, group = write(numbers(30), partitions=3), fresh("group")
    with consumer_of(cluster, group_id=group, max_poll_records=7) as consumer:
        consumer.subscribe([topic])
        records = read(consumer, 30)
        assert sorted(int(one.value) for one in records) == list(range(30))
        assert consumer.subscription() == {topic}
        partitions = [TopicPartition(topic, number) for number in range(3)]
        assert consumer.assignment() == set(partitions)
        assert consumer.group_metadata().group_id == group
        consumer.commit()
        found = consumer.committed(partitions)
        assert [found[one].offset for one in partitions if found[one] is not None] == [10, 10, 10]  # type: ignore[union-attr]
    write.append(topic, [b"next"])  # type: ignore[attr-defined]
    with consumer_of(cluster, group_id=group) as consumer:
        consumer.subscribe([topic])
        assert [one.value for one in read(consumer, 1)] == [b"next"]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_of_librdkafka_arrive_as_they_were_written(cluster: Cluster, write: Write, codec: str) -> None:
    from confluent_kafka import Producer

    topic = write()
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "compression.type": codec, "linger.ms": 50})
    producer.produce(topic, b"v" * 5_000, b"k", timestamp=1_234, headers=[("a", b"1"), ("b", None), ("a", b"")])
    producer.produce(topic, None, None, timestamp=5)
    producer.produce(topic, b"", b"", timestamp=6)
    assert producer.flush(10) == 0
    with consumer_of(cluster) as consumer:
        consumer.assign([(topic, 0)])
        records = read(consumer, 3)
    assert [(one.offset, one.timestamp_ms, one.timestamp_type, one.key, one.value, one.headers) for one in records] == [
        (0, 1_234, 0, b"k", b"v" * 5_000, (("a", b"1"), ("b", None), ("a", b""))),
        (1, 5, 0, None, None, ()),
        (2, 6, 0, b"", b"", ()),
    ]


def test_read_committed_skips_aborted_and_open_transactions(cluster: Cluster, write: Write) -> None:
    from confluent_kafka import Producer

    topic = write()
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": fresh("transaction")})
    producer.init_transactions(SECONDS)
    for name in ("committed", "aborted", "open"):
        producer.begin_transaction()
        producer.produce(topic, name.encode())
        producer.flush(SECONDS)
        if name == "committed":
            producer.commit_transaction(SECONDS)
        elif name == "aborted":
            producer.abort_transaction(SECONDS)
    partition = TopicPartition(topic, 0)
    with consumer_of(cluster) as dirty, consumer_of(cluster, isolation_level="read_committed") as clean:
        for one in (dirty, clean):
            one.assign([partition])
        assert [one.value for one in read(dirty, 3)] == [b"committed", b"aborted", b"open"]
        assert [one.value for one in read(clean, 1)] == [b"committed"]
        wait_for(clean, lambda: clean.position(partition) == 4)
        assert clean.end_offsets([partition]) == {partition: 4}
        assert dirty.end_offsets([partition]) == {partition: 5}
        producer.abort_transaction(SECONDS)
        wait_for(clean, lambda: clean.position(partition) == 6)


def test_positions_can_be_sought_and_looked_up(cluster: Cluster, write: Write) -> None:
    topic = write(numbers(10))
    partition = TopicPartition(topic, 0)
    with consumer_of(cluster) as consumer:
        consumer.assign([partition])
        assert consumer.position(partition) == 0
        consumer.seek(partition, 7)
        assert consumer.position(partition) == 7
        assert [one.offset for one in read(consumer, 3)] == [7, 8, 9]
        consumer.seek_to_beginning([partition])
        assert consumer.position(partition) == 0
        consumer.seek_to_end()
        assert consumer.position(partition) == 10
        consumer.seek(partition, OffsetAndMetadata(9, 0))
        (record,) = read(consumer, 1)
        assert record.offset == 9
        assert consumer.beginning_offsets([partition]) == {partition: 0}
        assert consumer.end_offsets([partition]) == {partition: 10}
        times = consumer.offsets_for_times({partition: record.timestamp_ms})
        found = times[partition]
        assert found is not None
        assert found.offset <= 9
        assert consumer.offsets_for_times({partition: record.timestamp_ms + 10_000}) == {partition: None}
        assert consumer.current_lag(partition) == 0
        with pytest.raises(BadValue):
            consumer.seek(partition, -1)
        with pytest.raises(BadValue):
            consumer.offsets_for_times({partition: -1})
        with pytest.raises(NotAssigned):
            consumer.seek(TopicPartition(topic, 5), 0)
        with pytest.raises(NotAssigned):
            consumer.position(TopicPartition(topic, 5))


def test_assigned_partitions_begin_at_committed_offsets_and_can_be_committed(cluster: Cluster, write: Write) -> None:
    topic, group = write(numbers(5)), fresh("group")
    partition = TopicPartition(topic, 0)
    for expected in (0, 3):
        with consumer_of(cluster, group_id=group, enable_auto_commit=False, max_poll_records=3) as consumer:
            consumer.assign([partition])
            assert read(consumer, 1)[0].offset == expected
            consumer.commit({partition: 3})


def test_automatic_commits_are_of_what_earlier_polls_returned(cluster: Cluster, write: Write) -> None:
    topic, group = write(numbers(5)), fresh("group")
    partition = TopicPartition(topic, 0)
    options = {"group_id": group, "max_poll_records": 2, "auto_commit_interval_ms": 0}
    with consumer_of(cluster, **options) as consumer, consumer_of(cluster, group_id=group) as other:
        consumer.assign([partition])
        for expected in (0, 2, 4):
            assert read(consumer, 1)
            wait_until_committed(other, partition, expected)
    with consumer_of(cluster, group_id=group) as consumer:
        assert consumer.committed([partition])[partition] == OffsetAndMetadata(5, 0)


def wait_until_committed(consumer: Consumer, partition: TopicPartition, expected: int) -> None:
    until = time.monotonic() + SECONDS
    while True:
        found = consumer.committed([partition])[partition]
        if (0 if found is None else found.offset) == expected:
            return
        assert time.monotonic() < until


def test_an_iteration_commits_only_what_it_has_returned(cluster: Cluster, write: Write) -> None:
    topic, group = write(numbers(10)), fresh("group")
    partition = TopicPartition(topic, 0)
    with consumer_of(cluster, group_id=group, enable_auto_commit=False) as consumer:
        consumer.subscribe([topic])
        for record in consumer:
            if record.offset == 3:
                consumer.commit()
                assert consumer.position(partition) == 4
                break
        found = consumer.committed([partition])[partition]
        assert found is not None
        assert found.offset == 4
        assert [one.offset for one in consumer.poll(1)] == [4, 5, 6, 7, 8, 9]
    with consumer_of(cluster, group_id=group) as consumer:
        consumer.subscribe([topic])
        assert next(iter(consumer)).offset == 4
        consumer.seek(partition, 8)
        assert next(iter(consumer)).offset == 8
    with consumer_of(cluster, group_id=group) as consumer:
        found = consumer.committed([partition])[partition]
        assert found is not None
        assert found.offset == 9


def test_what_an_iteration_has_not_returned_survives_a_change_of_what_is_read(cluster: Cluster, write: Write) -> None:
    topic, other = write(numbers(5)), write(numbers(1))
    with consumer_of(cluster, group_id=fresh("group")) as consumer:
        consumer.subscribe([topic])
        assert next(consumer).offset == 0
        consumer.subscribe([topic, other])
        assert [one.offset for one in read(consumer, 5) if one.topic == topic] == [1, 2, 3, 4]
    with consumer_of(cluster) as consumer:
        consumer.assign([(topic, 0)])
        assert next(consumer).offset == 0
        consumer.assign([(topic, 0), (other, 0)])
        assert [one.offset for one in read(consumer, 5) if one.topic == topic] == [1, 2, 3, 4]


def test_an_iteration_returns_nothing_of_a_partition_that_is_paused_meanwhile(cluster: Cluster, write: Write) -> None:
    topic, other = write(numbers(5)), write(numbers(2))
    with consumer_of(cluster) as consumer:
        consumer.assign([(topic, 0)])
        assert next(consumer).offset == 0
        consumer.pause([TopicPartition(topic, 0)])
        consumer.assign([(topic, 0), (other, 0)])
        assert [(one.topic, one.offset) for one in read(consumer, 2)] == [(other, 0), (other, 1)]
        consumer.resume([TopicPartition(topic, 0)])
        assert [one.offset for one in read(consumer, 4)] == [1, 2, 3, 4]


def test_what_is_no_offset_is_refused_before_it_is_sent(cluster: Cluster, write: Write) -> None:
    partition: Any = TopicPartition(write(numbers(1)), 0)
    bad: list[Any] = ["5", 1.5, -1, 1 << 63]
    with consumer_of(cluster, group_id=fresh("group")) as consumer:
        consumer.assign([partition])
        for offset in bad:
            with pytest.raises(BadValue, match="is not an offset"):
                consumer.commit({partition: offset})
            with pytest.raises(BadValue, match="is not an offset"):
                consumer.seek(partition, offset)
        consumer.commit({partition: 1})
        assert consumer.committed([partition]) == {partition: OffsetAndMetadata(1)}


def test_an_interrupted_listener_does_not_keep_the_rebalance_from_going_on(cluster: Cluster, write: Write) -> None:
    topic = write(numbers(3))

    class Interrupted(RebalanceListener):
        def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
            raise KeyboardInterrupt

    with consumer_of(cluster, group_id=fresh("group")) as consumer:
        consumer.subscribe([topic], listener=Interrupted())
        with pytest.raises(KeyboardInterrupt):
            read(consumer, 3)
        assert len(read(consumer, 3)) == 3


def test_paused_partitions_return_nothing_and_keep_their_records(cluster: Cluster, write: Write) -> None:
    topic = write(numbers(4), partitions=2)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    with consumer_of(cluster) as consumer:
        consumer.assign([first, second])
        consumer.pause([first])
        assert consumer.paused() == {first}
        assert {one.partition for one in read(consumer, 2)} == {1}
        assert consumer.poll(0.1) == []
        consumer.resume([first])
        assert [one.value for one in read(consumer, 2)] == [b"0", b"2"]
        with pytest.raises(NotAssigned):
            consumer.pause([TopicPartition("other", 0)])


class Heard(RebalanceListener):
    def __init__(self) -> None:
        self.calls: list[tuple[str, set[TopicPartition], str]] = []

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self.calls.append(("revoked", set(partitions), threading.current_thread().name))

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self.calls.append(("assigned", set(partitions), threading.current_thread().name))


def test_the_listener_is_called_in_the_polling_thread(cluster: Cluster, write: Write) -> None:
    topic = write(numbers(1))
    heard = Heard()
    with consumer_of(cluster, group_id=fresh("group")) as consumer:
        consumer.subscribe([topic], listener=heard)
        read(consumer, 1)
        consumer.unsubscribe()
        assert consumer.assignment() == frozenset()
    here = threading.current_thread().name
    both = {TopicPartition(topic, 0)}
    assert heard.calls == [("assigned", both, here), ("revoked", both, here)]


def test_what_a_listener_raises_reaches_poll(cluster: Cluster, write: Write) -> None:
    class Failing(RebalanceListener):
        def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
            raise LookupError("mine")

    topic = write()
    with consumer_of(cluster, group_id=fresh("group")) as consumer:
        consumer.subscribe([topic], listener=Failing())
        with pytest.raises(LookupError, match="mine"):
            read(consumer, 1)


def test_a_listener_may_seek_and_commit(cluster: Cluster, write: Write) -> None:
    topic, group = write(numbers(10)), fresh("group")
    partition = TopicPartition(topic, 0)

    class Seeking(RebalanceListener):
        def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
            consumer.seek(partition, 6)
            consumer.commit({partition: 5})

    with consumer_of(cluster, group_id=group, enable_auto_commit=False) as consumer:
        consumer.subscribe([topic], listener=Seeking())
        assert read(consumer, 1)[0].offset == 6
        assert consumer.committed([partition])[partition] == OffsetAndMetadata(5, None)


def test_a_pattern_picks_up_topics_that_match(cluster: Cluster, write: Write) -> None:
    stem = fresh("match")
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic(f"{stem}-a", 1)])[f"{stem}-a"].result(10)
    write.append(f"{stem}-a", [b"1"])  # type: ignore[attr-defined]
    with consumer_of(cluster, group_id=fresh("group"), metadata_max_age_ms=200) as consumer:
        consumer.subscribe(pattern=rf"{stem}-[ab]")
        assert read(consumer, 1)[0].topic == f"{stem}-a"
        admin.create_topics([NewTopic(f"{stem}-b", 1)])[f"{stem}-b"].result(10)
        write.append(f"{stem}-b", [b"2"])  # type: ignore[attr-defined]
        assert read(consumer, 1)[0].topic == f"{stem}-b"
        assert consumer.subscription() == {f"{stem}-a", f"{stem}-b"}


def test_wakeup_ends_a_poll_from_another_thread(cluster: Cluster, write: Write) -> None:
    topic = write()
    with consumer_of(cluster) as consumer:
        consumer.assign([(topic, 0)])
        threading.Timer(0.1, consumer.wakeup).start()
        with pytest.raises(WakeupError):
            consumer.poll(SECONDS)
        assert consumer.poll(0.05) == []
        consumer.wakeup()
        with pytest.raises(WakeupError):
            consumer.poll(SECONDS)


def test_a_second_thread_is_refused_by_name(cluster: Cluster, write: Write) -> None:
    topic = write()
    with consumer_of(cluster) as consumer:
        consumer.assign([(topic, 0)])

        def poll() -> None:
            with pytest.raises(WakeupError):
                consumer.poll(SECONDS)

        def assign_until_refused() -> None:
            until = time.monotonic() + SECONDS
            while time.monotonic() < until:
                consumer.assignment()

        thread = threading.Thread(target=poll, name="reader-7")
        thread.start()
        with pytest.raises(ConcurrentUse, match="'reader-7' uses it"):
            assign_until_refused()
        consumer.wakeup()
        thread.join()
        assert consumer.assignment() == {TopicPartition(topic, 0)}


def test_a_closed_consumer_says_so(our_cluster: Cluster) -> None:
    consumer = consumer_of(our_cluster, group_id=fresh("group"))
    consumer.close()
    consumer.close()
    assert consumer.is_closed
    with pytest.raises(ConsumerClosed):
        consumer.poll(0)
    with pytest.raises(ConsumerClosed):
        consumer.subscribe(["t"])


def test_calls_that_make_no_sense_are_refused(our_cluster: Cluster) -> None:
    with consumer_of(our_cluster) as alone, consumer_of(our_cluster, group_id=fresh("group")) as member:
        with pytest.raises(NotSubscribed):
            alone.poll(0)
        with pytest.raises(NoGroup, match="subscribe"):
            alone.subscribe(["t"])
        with pytest.raises(NoGroup, match="commit"):
            alone.commit()
        with pytest.raises(NoGroup):
            alone.committed([TopicPartition("t", 0)])
        member.subscribe([fresh("missing")])
        with pytest.raises(MixedSubscription, match="unsubscribe"):
            member.assign([("t", 0)])
        member.subscribe([])
        with pytest.raises(NotSubscribed):
            member.poll(0)


@pytest.mark.parametrize("options", [{"group_id": ""}, {"group_id": "  "}, {"auto_offset_rest": "latest"}])
def test_bad_options_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(BadOption):
        Consumer(bootstrap_servers="localhost:1", **options)  # type: ignore[arg-type]


def test_a_missing_offset_is_an_error_if_nothing_resets_it(cluster: Cluster, write: Write) -> None:
    topic = write(numbers(3))
    partition = TopicPartition(topic, 0)
    with consumer_of(cluster, group_id=fresh("group"), auto_offset_reset="none") as consumer:
        consumer.assign([partition])
        with pytest.raises(NoOffsetForPartition):
            read(consumer, 1)
        consumer.seek(partition, 99)
        with pytest.raises(OffsetOutOfRange, match="99"):
            read(consumer, 1)
        consumer.seek(partition, 2)
        assert read(consumer, 1)[0].offset == 2


def test_records_younger_than_a_duration_are_read(cluster: Cluster, write: Write) -> None:
    from confluent_kafka import Producer

    topic = write()
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    now = int(time.time() * 1000)
    for hours in (30, 20, 10):
        producer.produce(topic, b"", timestamp=now - hours * 3_600_000)
        producer.flush(10)
    with consumer_of(cluster, auto_offset_reset="by_duration:P1D") as consumer:
        consumer.assign([(topic, 0)])
        assert [one.offset for one in read(consumer, 2)] == [1, 2]


def test_deserializers_get_topic_and_bytes_and_failures_keep_the_position(cluster: Cluster, write: Write) -> None:
    topic = write([b"1", None, b"x", b"3"])
    partition = TopicPartition(topic, 0)
    with consumer_of(cluster, value_deserializer=lambda name, data: (name, int(data))) as consumer:
        consumer.assign([partition])
        assert [one.value for one in read(consumer, 2)] == [(topic, 1), None]
        for _ in range(2):
            with pytest.raises(DeserializationFailed, match="offset 2: the value deserializer failed") as caught:
                read(consumer, 1)
            assert (caught.value.partition, caught.value.offset, caught.value.record.value) == (partition, 2, b"x")
            assert consumer.position(partition) == 2
        consumer.seek(partition, 3)
        assert [one.value for one in read(consumer, 1)] == [(topic, 3)]


def test_interceptors_see_records_and_commits(cluster: Cluster, write: Write) -> None:
    class Doubling(ConsumerInterceptor):
        committed: Mapping[TopicPartition, OffsetAndMetadata] = {}
        closed = False

        def on_consume(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
            return [one._replace(value=one.value * 2) for one in records]

        def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
            self.committed = offsets

        def close(self) -> None:
            self.closed = True

    class Broken(ConsumerInterceptor):
        def on_consume(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
            raise LookupError("mine")

    topic = write([b"a"])
    partition = TopicPartition(topic, 0)
    one = Doubling()
    with consumer_of(cluster, group_id=fresh("group"), interceptors=[Broken(), one]) as consumer:
        consumer.assign([partition])
        assert read(consumer, 1)[0].value == b"aa"
        consumer.commit()
        assert one.committed == {partition: OffsetAndMetadata(1, 0)}
    assert one.closed


def test_asynchronous_commits_call_back_in_order(cluster: Cluster, write: Write) -> None:
    topic, heard = write(numbers(3)), []
    partition = TopicPartition(topic, 0)
    with consumer_of(cluster, group_id=fresh("group"), enable_auto_commit=False) as consumer:
        consumer.assign([partition])
        for offset in (1, 2):
            consumer.commit_async({partition: offset}, lambda offsets, error: heard.append((offsets, error)))
        consumer.commit({partition: 3})
        assert heard == [({partition: OffsetAndMetadata(offset)}, None) for offset in (1, 2)]


def test_undecoded_batches_can_be_polled(cluster: Cluster, write: Write) -> None:
    topic = write(numbers(5))
    partition = TopicPartition(topic, 0)
    with consumer_of(cluster) as consumer:
        consumer.assign([partition])
        values: list[bytes | None] = []
        while len(values) < 5:
            for fetched in consumer.poll_batches(SECONDS):
                values += [record.value for one in fetched.batches() for record in one.records]
        assert values == numbers(5)
        assert consumer.position(partition) == 5


def test_topics_are_described(cluster: Cluster, write: Write) -> None:
    topic = write(partitions=2)
    with consumer_of(cluster) as consumer:
        assert [one.partition for one in consumer.partitions_for(topic)] == [0, 1]
        assert all(one.leader is not None for one in consumer.list_topics()[topic])
        with pytest.raises(NotFound, match="does not exist"):
            consumer.partitions_for("missing")


def test_metrics_count_what_was_read(cluster: Cluster, write: Write) -> None:
    topic = write(numbers(5))
    with consumer_of(cluster) as consumer:
        consumer.assign([(topic, 0)])
        read(consumer, 5)
        metrics = consumer.metrics()
    assert metrics["records-consumed-total"] == 5
    assert metrics["assigned-partitions"] == 1
    assert metrics["records-lag-max"] == 0
    assert metrics["bytes-consumed-total"] > 0
    assert metrics["incoming-byte-total"] > metrics["bytes-consumed-total"]
    assert metrics["Fetch.request-total"] > 0


def test_an_unreachable_cluster_is_a_time_out_that_names_the_reason() -> None:
    with Consumer(bootstrap_servers="127.0.0.1:1") as consumer:
        consumer.assign([("t", 0)])
        assert consumer.poll(0.1) == []
        with pytest.raises(
            TimedOut, match=r"the position of t-0 is not known in time: 127\.0\.0\.1:1: connection refused"
        ):
            consumer.position(TopicPartition("t", 0), 0.2)
        with pytest.raises(KgctlError, match=r"127\.0\.0\.1:1"):
            consumer.partitions_for("t", 0.2)


def test_a_commit_to_a_dead_broker_is_a_time_out_that_names_it() -> None:
    from broker.local import LocalBroker

    partition = TopicPartition("t", 0)
    options: dict[str, Any] = {"group_id": "g", "enable_auto_commit": False}
    with LocalBroker() as broker, Consumer(bootstrap_servers=broker.bootstrap_servers, **options) as consumer:
        consumer.assign([partition])
        consumer.commit({partition: 1})
        address = broker.bootstrap_servers
        broker.kill()
        with pytest.raises(TimedOut, match=f"the commit of group 'g' timed out: {address}: connection refused"):
            consumer.commit({partition: 2}, 0.5)
        with pytest.raises(TimedOut, match=f"committed offsets of group 'g' timed out: {address}: connection refused"):
            consumer.committed([partition], 0.5)


@pytest.mark.timeout(60)
def test_closing_does_not_wait_long_for_a_dead_broker(caplog: pytest.LogCaptureFixture) -> None:
    """Also with an automatic commit that no broker takes."""
    from broker.local import LocalBroker
    from kgctl import Producer

    with LocalBroker() as broker:
        servers = broker.bootstrap_servers
        with Producer(bootstrap_servers=servers) as producer:
            producer.send("t", b"value").result(SECONDS)
        consumer = Consumer(bootstrap_servers=servers, group_id="g", auto_offset_reset="earliest")
        consumer.subscribe(["t"])
        read(consumer, 1)
        broker.kill()
        caplog.set_level(logging.INFO)
        consumer.close(1_000)
    assert f"the automatic commit failed: {servers}: connection refused" in caplog.text


def test_properties_of_a_file_make_a_consumer(cluster: Cluster, write: Write) -> None:
    topic = write(numbers(1))
    properties = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "auto.offset.reset": "earliest",
        "linger.ms": "5",
        "value.deserializer": f"{__name__}:decoded",
    }
    with Consumer.from_properties(properties) as consumer:
        consumer.assign([(topic, 0)])
        assert read(consumer, 1)[0].value == "0!"


def decoded(topic: str, data: bytes) -> str:
    return data.decode() + "!"


@pytest.mark.slow
def test_reading_continues_after_the_broker_was_killed(own_cluster: Cluster) -> None:
    from confluent_kafka import Producer

    topic = fresh("topic")
    with consumer_of(own_cluster, group_id=fresh("group")) as consumer:
        for round_number in range(2):
            producer = Producer({"bootstrap.servers": own_cluster.bootstrap_servers})
            producer.produce(topic, str(round_number).encode())
            assert producer.flush(SECONDS) == 0
            if round_number == 0:
                consumer.subscribe([topic])
            assert [one.value for one in read(consumer, 1)] == [str(round_number).encode()]
            consumer.commit()
            if round_number == 0:
                own_cluster.kill()
                assert consumer.poll(0.2) == []
                own_cluster.restart()


def test_a_topic_that_was_deleted_and_created_again_is_read_from_its_start(
    cluster: Cluster, write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    topic = write(numbers(3))
    with consumer_of(cluster) as consumer:
        consumer.assign([(topic, 0)])
        assert len(read(consumer, 3)) == 3
        replace(cluster, topic)
        new = [b"new-%d" % number for number in range(5)]
        write.append(topic, new)  # type: ignore[attr-defined]
        assert [(one.offset, one.value) for one in read(consumer, 5)] == list(enumerate(new))
    assert f"topic {topic} was deleted and created again: the consumer leaves offset 3 of {topic}-0" in caplog.text
