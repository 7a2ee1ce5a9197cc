"""Batches, lingering and the bounded buffer of the producer."""

from __future__ import annotations

from kgctl.client.producer.accumulator import RecordAccumulator
from kgctl.client.producer.records import OutgoingRecord
from kgctl.model.topic_partition import TopicPartition

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


def record(size: int = 50) -> OutgoingRecord:
    return OutgoingRecord(b"v" * size)


def accumulator(batch_bytes: int = 200, linger_ms: int = 10, buffer_bytes: int = 10_000) -> RecordAccumulator:
    return RecordAccumulator(batch_bytes, linger_ms, buffer_bytes)


def test_a_batch_lingers_exactly_for_its_time() -> None:
    gathered = accumulator(linger_ms=10)
    assert gathered.wake_at_ms() is None
    gathered.append(P0, record(), 100)
    assert gathered.wake_at_ms() == 110
    assert gathered.ready(109) == []
    assert gathered.ready(110) == [P0]


def test_a_batch_lingers_from_its_first_record_on() -> None:
    gathered = accumulator(linger_ms=10)
    gathered.append(P0, record(), 100)
    gathered.append(P0, record(), 109)
    assert gathered.ready(110) == [P0]


def test_a_full_batch_is_ready_at_once_and_the_next_one_lingers() -> None:
    gathered = accumulator(batch_bytes=200)
    for _ in range(3):
        gathered.append(P0, record(), 100)
    assert gathered.ready(100) == [P0]
    assert len(gathered.take(P0).records) == 2  # type: ignore[union-attr]
    assert gathered.ready(100) == []


def test_a_record_larger_than_a_batch_gets_a_batch_of_its_own() -> None:
    gathered = accumulator(batch_bytes=200)
    gathered.append(P0, record(), 100)
    gathered.append(P0, record(500), 100)
    gathered.append(P0, record(), 100)
    taken = [gathered.take(P0) for _ in range(3)]
    assert [len(batch.records) for batch in taken if batch] == [1, 1, 1]
    assert gathered.take(P0) is None


def test_a_flush_makes_everything_ready() -> None:
    gathered = accumulator()
    gathered.append(P1, record(), 100)
    gathered.append(P0, record(), 100)
    assert gathered.ready(100, flush=True) == [P1, P0]


def test_a_full_buffer_refuses_the_next_record() -> None:
    probe = accumulator()
    probe.append(P0, record(), 0)
    gathered = accumulator(buffer_bytes=probe.used_bytes)
    assert gathered.append(P0, record(), 0)
    assert not gathered.append(P0, record(), 0)
    assert gathered.used_bytes == probe.used_bytes


def test_a_full_buffer_makes_lingering_batches_ready() -> None:
    gathered = accumulator(buffer_bytes=350)
    gathered.append(P0, record(), 0)
    assert gathered.ready(0) == []
    assert not gathered.append(P0, record(), 0)
    assert gathered.ready(0) == [P0]


def test_a_batch_occupies_the_buffer_until_it_is_released() -> None:
    gathered = accumulator(buffer_bytes=350)
    gathered.append(P0, record(), 0)
    batch = gathered.take(P0)
    assert batch is not None
    assert not gathered.append(P0, record(), 0)
    gathered.release(batch)
    assert gathered.used_bytes == 0
    assert gathered.append(P0, record(), 0)


def test_an_empty_buffer_accepts_a_record_larger_than_itself() -> None:
    gathered = accumulator(buffer_bytes=100)
    assert gathered.append(P0, record(5000), 0)
    assert not gathered.append(P0, record(1), 0)


def test_short_records_count_with_the_overhead_of_their_objects() -> None:
    gathered = accumulator(batch_bytes=10**9, buffer_bytes=100_000)
    count = 0
    while gathered.append(P0, record(1), 0):
        count += 1
    assert count < 500


def test_the_estimated_size_is_never_below_the_encoded_size() -> None:
    from broker.protocol.record_batch import Record, build_batch

    name, big = "ünï", b"x" * 300
    for one in (OutgoingRecord(None), OutgoingRecord(b"", b""), OutgoingRecord(big, big, ((name, big), (name, None)))):
        built = build_batch([Record(0, 1_700_000_000_000, one.key, one.value, one.headers)] * 1)
        assert one.size_bytes() >= len(built) - 61
