"""Batches, the buffer, and what is due; after Kafka's RecordAccumulatorTest and BufferPoolTest."""

from __future__ import annotations

import random
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.protocol.compression import Codec
from broker.protocol.errors import ErrorCode
from broker.protocol.record_batch import Record, build_batch, check_crc, decode_records, parse_header
from kgctl.client.net.errors import KgctlError
from kgctl.client.producer.core.batch import Batch, Delivery, ProducerIdentity
from kgctl.client.producer.core.buffer import Buffer, Reservation
from kgctl.client.producer.core.client import run_callbacks
from kgctl.client.producer.core.errors import ProducerClosed, RecordTooLarge
from kgctl.model.topic_partition import TopicPartition
from tests.harness.producing import NOT_LEADER, Scene, _Engine

KEY = TopicPartition("orders", 0)
texts = st.one_of(st.none(), st.binary(max_size=40))
records = st.tuples(
    st.integers(-(2**40), 2**40), texts, texts, st.lists(st.tuples(st.text(max_size=5), texts), max_size=3)
)


def batch_of(*values: bytes) -> Batch:
    batch = Batch(KEY, 0, 0, _Engine())
    for value in values:
        assert batch.append(1000, None, value, (), 1 << 20)
    return batch


@given(st.lists(records, min_size=1, max_size=20), st.sampled_from(Codec), st.booleans())
def test_a_batch_has_the_bytes_of_the_brokers_own_encoder(
    given_records: list[tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]],
    codec: Codec,
    is_transactional: bool,
) -> None:
    batch = Batch(KEY, 0, 0, _Engine())
    rows = [
        Record(number, time, key, value, tuple(headers))
        for number, (time, key, value, headers) in enumerate(given_records)
    ]
    for row in rows:
        assert batch.append(row.timestamp, row.key, row.value, row.headers, 1 << 30)
    batch.assign(ProducerIdentity(4, 2), 2**31 + 5, is_transactional=is_transactional)
    size = batch.size_bytes
    encoded = batch.close(codec)
    assert encoded == build_batch(
        rows, codec=codec, producer_id=4, producer_epoch=2, base_sequence=5, is_transactional=is_transactional
    )
    assert codec is not Codec.NONE or len(encoded) == size


def test_a_new_sequence_changes_the_header_and_the_checksum_only() -> None:
    batch = batch_of(b"a", b"b")
    batch.assign(ProducerIdentity(1, 0), 9, is_transactional=False)
    batch.close(Codec.GZIP)
    batch.assign_again(ProducerIdentity(1, 1), 0)
    encoded = batch.encoded or b""
    header = parse_header(encoded)
    assert (header.producer_epoch, header.base_sequence) == (1, 0)
    assert check_crc(encoded, 0, header)
    assert [record.value for record in decode_records(encoded)] == [b"a", b"b"]


def test_a_batch_takes_records_up_to_its_size_and_at_least_one() -> None:
    batch = Batch(KEY, 0, 0, _Engine())
    assert batch.append(0, None, b"x" * 500, (), 100)
    assert not batch.append(0, None, b"", (), 100)
    assert batch.is_full


def test_halves_have_the_records_sequences_and_futures_of_the_batch() -> None:
    scene = Scene()
    deliveries = scene.batch_of(b"a", b"b", b"c")
    scene.answer(ErrorCode.MESSAGE_TOO_LARGE)
    assert (scene.sequences, scene.values) == ([0], [[b"a"]])
    scene.answer(offset=10)
    assert scene.sequences == [1]
    assert scene.values == [[b"b", b"c"]]
    scene.answer(ErrorCode.MESSAGE_TOO_LARGE)
    scene.answer(offset=11)
    scene.answer(offset=12)
    assert [one.result(0).offset for one in deliveries] == [10, 11, 12]
    assert scene.core.buffer.free_bytes == scene.core.buffer.total_bytes


# --- what is due ---


def test_a_full_batch_is_sent_at_once_and_an_open_one_lingers() -> None:
    scene = Scene(linger_ms=10, batch_bytes=100)
    scene.send(b"x" * 60)
    scene.turn()
    assert scene.produced == []
    scene.send(b"y" * 60)
    scene.turn()
    assert scene.values == [[b"x" * 60]]
    scene.answer()
    scene.sleep(10)
    assert scene.values == [[b"y" * 60]]


def test_a_record_larger_than_a_batch_gets_a_batch_of_its_own() -> None:
    scene = Scene(batch_bytes=100)
    scene.send(b"x" * 1000)
    scene.send(b"y")
    scene.turn()
    scene.answer()
    assert [one.values for one in scene.produced] == [[b"y"]]


@pytest.mark.parametrize(("buffer_bytes", "option"), [(1 << 20, "max.request.size"), (500, "buffer.memory")])
def test_a_record_beyond_the_limits_is_refused(buffer_bytes: int, option: str) -> None:
    scene = Scene(batch_bytes=100, buffer_bytes=buffer_bytes, max_request_bytes=1000)
    with pytest.raises(RecordTooLarge, match=option):
        scene.send(b"x" * (2000 if buffer_bytes > 1000 else 600))


def test_the_next_look_is_when_the_first_batch_has_lingered() -> None:
    scene = Scene(partitions=2, linger_ms=10)
    scene.send(partition=0)
    scene.sleep(4)
    scene.send(partition=1)
    scene.turn()
    assert scene.core.wake_at_ms() == scene.script.now_ms + 6


def test_a_flush_sends_what_lingers_until_all_is_done() -> None:
    scene = Scene(partitions=2, linger_ms=5000)
    for partition in (0, 1):
        scene.send(partition=partition)
    scene.turn()
    assert scene.produced == []
    scene.core.accumulator.flushes += 1
    scene.turn()
    scene.answer_all()
    assert not scene.core.accumulator.incomplete
    scene.core.accumulator.flushes -= 1
    scene.send()
    scene.turn()
    assert scene.produced == []


def test_a_retry_waits_for_the_backoff_which_grows() -> None:
    scene = Scene(retry_backoff_ms=100, delivery_timeout_ms=60_000)
    scene.batch_of(b"a")
    waits = []
    for _ in range(6):
        scene.answer(ErrorCode.NOT_ENOUGH_REPLICAS)
        began = scene.script.now_ms
        while not scene.produced:
            scene.sleep((scene.core.wake_at_ms() or 0) - scene.script.now_ms)
        waits.append(scene.script.now_ms - began)
    for wait, usual in zip(waits, (100, 200, 400, 800, 1000, 1000), strict=True):
        assert usual * 0.8 <= wait <= usual * 1.2


def test_a_new_leader_ends_the_backoff() -> None:
    scene = Scene(nodes=2, retry_backoff_ms=500, delivery_timeout_ms=10_000)
    scene.batch_of(b"a")
    scene.script.leaders["orders", 0] = (2, 5)
    scene.answer(NOT_LEADER)
    scene.sleep(20)
    assert [one.request.endpoint.host for one in scene.produced] == ["host2"]


def test_an_answer_that_names_the_new_leader_is_followed_without_a_lookup() -> None:
    from broker.protocol.messages.metadata import MetadataRequest
    from broker.protocol.messages.produce import ProduceResponse

    scene = Scene(nodes=2, retry_backoff_ms=500, delivery_timeout_ms=10_000)
    scene.batch_of(b"a")
    scene.script.answers[MetadataRequest] = None
    scene.answer(NOT_LEADER, current_leader=ProduceResponse.CurrentLeader(leader_id=2, leader_epoch=5))
    scene.turn()
    assert [one.request.endpoint.host for one in scene.produced] == ["host2"]


def test_a_request_holds_one_batch_of_each_partition_up_to_its_size_and_starves_none() -> None:
    scene = Scene(partitions=4, linger_ms=1000, batch_bytes=100, max_request_bytes=250, max_in_flight=1)
    for _ in range(3):
        for partition in range(4):
            scene.send(b"x" * 40, partition=partition)
            scene.send(b"x" * 40, partition=partition)
    scene.core.accumulator.flushes += 1
    scene.turn()
    order = []
    for _ in range(6):
        order.append([one.partition for one in scene.produced])
        scene.answer()
    assert order == [[0, 1], [2, 3], [0, 1], [2, 3], [0, 1], [2, 3]]


def test_a_muted_partition_is_not_drained() -> None:
    scene = Scene(keeps_order=True, idempotent=False, batch_bytes=1)
    for value in (b"a", b"b"):
        scene.batch_of(value)
    assert scene.values == [[b"a"]]
    scene.answer()
    assert scene.values == [[b"b"]]


# --- the end of batches ---


def test_an_expired_batch_fails_alone() -> None:
    scene = Scene(nodes=2, partitions=2, delivery_timeout_ms=1000, request_timeout_ms=5000)
    scene.script.down.add(scene.script.endpoint(2))
    scene.script.break_node(scene.script.endpoint(2))
    lost = scene.send(b"lost", partition=1)
    scene.sleep(900)
    good = scene.send(b"good", partition=0)
    scene.turn()
    scene.answer(offset=3)
    scene.sleep(100)
    assert isinstance(lost.exception(0), KgctlError)
    assert "1 record to orders-1: not acknowledged in time" in str(lost.exception(0))
    assert good.result(0).offset == 3


def test_abandoned_batches_fail_and_free_their_memory() -> None:
    scene = Scene(linger_ms=1000, batch_bytes=100)
    deliveries = [scene.send(b"x" * 60) for _ in range(5)]
    scene.turn()
    scene.core.abort(ProducerClosed("closed"))
    assert all(isinstance(one.exception(0), ProducerClosed) for one in deliveries)
    assert scene.core.buffer.free_bytes == scene.core.buffer.total_bytes
    with pytest.raises(ProducerClosed):
        scene.send()
    scene.answer_all()


def test_callbacks_run_once_in_order_and_hurt_nobody() -> None:
    scene = Scene(linger_ms=10)
    seen: list[int] = []
    for number in range(4):
        delivery = scene.send(b"%d" % number)
        if number == 1:
            delivery.add_done_callback(lambda _: 1 // 0)
        delivery.add_done_callback(lambda one: seen.append(one.result(0).offset))
    scene.sleep(10)
    scene.answer(offset=5)
    delivery.add_done_callback(lambda one: seen.append(-1))
    assert seen == [5, 6, 7, 8, -1]


def test_a_callback_that_runs_the_later_ones_leaves_the_deque_in_order() -> None:
    batches = [batch_of(b"a"), batch_of(b"b"), batch_of(b"c")]
    completions, seen = deque(batches[:2]), []
    errors: list[BaseException] = []

    def close(delivery: Delivery) -> None:
        seen.append("a")
        run_callbacks(completions, errors.append)
        completions.append(batches[2])

    batches[0].notify(Delivery(batches[0], 0, 0), close)
    batches[1].notify(Delivery(batches[1], 0, 0), lambda _: seen.append("b"))
    batches[2].notify(Delivery(batches[2], 0, 0), lambda _: seen.append("c"))
    run_callbacks(completions, errors.append)
    assert (seen, errors, list(completions)) == (["a", "b", "c"], [], [])


# --- the buffer ---


def test_memory_is_taken_and_given_back() -> None:
    buffer = Buffer(100)
    first = buffer.reserve(60)
    assert (first.is_granted, buffer.free_bytes) == (True, 40)
    buffer.release(60)
    assert buffer.free_bytes == 100


def test_who_asks_first_is_served_first_even_if_a_later_request_would_fit() -> None:
    buffer = Buffer(100)
    buffer.reserve(90)
    large, small = buffer.reserve(50), buffer.reserve(5)
    assert (large.is_granted, small.is_granted, buffer.waiting) == (False, False, 2)
    buffer.release(90)
    assert (large.is_granted, small.is_granted, buffer.free_bytes) == (True, True, 45)


def test_a_request_that_is_given_up_lets_the_next_one_pass() -> None:
    buffer = Buffer(100)
    buffer.reserve(90)
    large, small = buffer.reserve(50), buffer.reserve(5)
    buffer.cancel(large)
    assert small.is_granted
    buffer.cancel(small)
    assert buffer.free_bytes == 10


def test_a_closed_buffer_refuses_those_who_wait_and_all_others() -> None:
    buffer = Buffer(10)
    buffer.reserve(10)
    waiting = buffer.reserve(5)
    buffer.close()
    assert waiting.is_closed
    assert buffer.reserve(1).is_closed


def test_a_random_order_of_requests_loses_no_memory() -> None:
    draw, buffer = random.Random(5), Buffer(1000)
    held: list[Reservation] = []
    for _ in range(3000):
        if held and draw.random() < 0.5:
            buffer.cancel(held.pop(draw.randrange(len(held))))
        else:
            held.append(buffer.reserve(draw.randrange(1, 400)))
        assert buffer.free_bytes == 1000 - sum(one.size_bytes for one in held if one.is_granted)
    for one in held:
        buffer.cancel(one)
    assert (buffer.free_bytes, buffer.waiting) == (1000, 0)


def test_a_full_buffer_makes_lingering_batches_due() -> None:
    scene = Scene(partitions=2, linger_ms=10_000, batch_bytes=100, buffer_bytes=200)
    scene.send(b"x" * 60)
    waiting = scene.try_send(b"x" * 60, partition=1)
    assert isinstance(waiting, Reservation)
    scene.turn()
    scene.answer()
    assert waiting.is_granted


# --- partitions ---


def test_keyless_records_fill_a_batch_before_they_change_the_partition() -> None:
    scene = Scene(partitions=3, linger_ms=10_000, batch_bytes=400)
    for number in range(60):
        scene.send(b"%040d" % number, partition=None)
    scene.core.accumulator.flushes += 1
    scene.turn()
    sizes: list[int] = []
    for _ in range(100):
        sizes += [one.header.record_count for one in scene.produced]
        if not scene.produced:
            break
        for _ in range(len(scene.script.requests(type(scene.produced[0].request.message)))):
            scene.answer()
    assert sum(sizes) == 60
    assert sorted(sizes)[3:] == [max(sizes)] * (len(sizes) - 3)


def test_a_partition_whose_node_takes_nothing_is_avoided() -> None:
    scene = Scene(nodes=2, partitions=2, availability_timeout_ms=10, batch_bytes=1, delivery_timeout_ms=60_000)
    scene.script.down.add(scene.script.endpoint(2))
    scene.script.break_node(scene.script.endpoint(2))
    scene.send(partition=1)
    scene.sleep(100)
    for _ in range(20):
        scene.send(b"x", partition=None)
    queues = scene.core.accumulator.topic("orders").queues
    assert len(queues[1].batches) <= 2
