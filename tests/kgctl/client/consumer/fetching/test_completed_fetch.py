"""Records are decoded as they are taken, in pieces of any size; positions move behind what was taken."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.protocol.compression import Codec
from broker.protocol.record_batch import Record, build_batch, decode_records, parse_header
from broker.protocol.wire_types import DecodeError
from kgctl.client.consumer.consumer_record import LOG_APPEND_TIME, ConsumerRecord, decode_batch
from kgctl.client.consumer.errors import CorruptRecord
from kgctl.client.consumer.fetching.completed_fetch import CompletedFetch
from kgctl.model.topic_partition import TopicPartition
from tests.kgctl.client.consumer.fetching.records import ABORT, COMMIT, batch, marker, row

P = TopicPartition("t", 0)


def completed(
    raw: bytes, offset: int = 0, *, aborted: list[tuple[int, int]] | None = None, check_crcs: bool = True
) -> CompletedFetch:
    return CompletedFetch(
        P, row(raw, aborted=aborted or ()), offset, committed_only=aborted is not None, check_crcs=check_crcs
    )


def offsets(records: list[ConsumerRecord]) -> list[int]:
    return [one.offset for one in records]


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("step", [1, 2, 3, 7, 100])
def test_records_are_taken_in_pieces(codec: Codec, step: int) -> None:
    fetch = completed(batch(0, 5, codec=codec) + batch(5, 5, codec=codec), 3)
    assert (fetch.next_offset, fetch.end_offset) == (3, 10)
    taken: list[int] = []
    while not fetch.is_consumed:
        piece = fetch.take(step)
        assert len(piece) <= step
        taken += offsets(piece)
        assert fetch.next_offset == taken[-1] + 1
    assert taken == list(range(3, 10))
    assert fetch.take(step) == []


def test_a_record_has_all_that_was_sent() -> None:
    headers = (("trace", b"1"), ("empty", None))
    raw = build_batch([Record(4, 17, b"k", b"v", headers), Record(5, 16, None, None, ())], leader_epoch=7)
    first, second = completed(raw, 4).take(10)
    assert first == ConsumerRecord("t", 0, 4, 17, 0, b"k", b"v", headers, 7)
    assert second == ConsumerRecord("t", 0, 5, 16, 0, None, None, (), 7)
    (appended,) = completed(build_batch([Record(4, 17, None, b"", ())], log_append_time_ms=99), 4).take(1)
    assert (appended.timestamp_ms, appended.timestamp_type, appended.leader_epoch) == (99, LOG_APPEND_TIME, None)


values = st.one_of(st.none(), st.binary(max_size=70), st.integers(60, 20_000).map(bytes))
any_record = st.builds(
    Record,
    offset=st.just(0),
    timestamp=st.integers(-(2**40), 2**40),
    key=values,
    value=values,
    headers=st.lists(st.tuples(st.text(max_size=5), values), max_size=2).map(tuple),
)


@given(st.lists(st.tuples(any_record, st.integers(1, 20_000)), min_size=1, max_size=10), st.sampled_from(Codec))
def test_records_of_any_size_are_decoded_as_the_plain_decoder_does(
    drawn: list[tuple[Record, int]], codec: Codec
) -> None:
    at, records = 0, []
    for record, gap in drawn:
        records.append(record._replace(offset=at))
        at += gap
    raw = build_batch(records, codec=codec)
    taken = completed(raw).take(100)
    assert [(one.offset, one.timestamp_ms, one.key, one.value, one.headers) for one in taken] == decode_records(raw)


@given(st.integers(61, 150), st.integers(0, 255))
def test_damage_is_an_error_or_other_records_but_never_a_crash(at: int, byte: int) -> None:
    raw = bytearray(build_batch([Record(n, n, b"key", b"value" * 5, (("h", b"x"),)) for n in range(3)]))
    raw[at] = byte
    fetch = completed(bytes(raw), check_crcs=False)
    try:
        records = fetch.take(10)
    except CorruptRecord:
        with pytest.raises(DecodeError):
            decode_records(bytes(raw))
    else:
        assert [(one.offset, one.timestamp_ms, one.key, one.value, one.headers) for one in records] == decode_records(
            raw
        )


@pytest.mark.parametrize("which", ["record", "key", "value"])
def test_a_negative_length_is_damage(which: str) -> None:
    raw = bytearray(build_batch([Record(0, 0, b"k", b"v", ())]))
    raw[61 + {"record": 0, "key": 4, "value": 6}[which]] |= 1
    out: list[ConsumerRecord] = []
    with pytest.raises(DecodeError):
        decode_batch(bytes(raw[61:]), parse_header(raw), "t", 0, out)


def test_records_before_damage_are_taken_first_and_the_error_names_where_to_continue() -> None:
    good, bad = batch(0, 3), bytearray(batch(3, 3))
    bad[70] ^= 1
    fetch = completed(good + bytes(bad) + batch(6, 1))
    assert offsets(fetch.take(10)) == [0, 1, 2]
    assert not fetch.is_consumed
    for _ in range(2):
        with pytest.raises(CorruptRecord, match=r"t-0, offset 3: the checksum .* seek to offset 6") as caught:
            fetch.take(10)
        assert (caught.value.partition, caught.value.offset, caught.value.next_offset) == (P, 3, 6)
    assert fetch.next_offset == 3


def test_a_batch_with_an_impossible_length_is_damage() -> None:
    with pytest.raises(CorruptRecord, match="length"):
        completed(struct.pack(">qi", 0, 1) + bytes(100)).take(1)


def test_old_record_formats_are_refused() -> None:
    raw = bytearray(batch(0, 1))
    raw[16] = 1
    with pytest.raises(CorruptRecord, match="record format 1"):
        completed(bytes(raw)).take(1)


def test_an_incomplete_last_batch_is_left_for_the_next_fetch() -> None:
    raw = batch(0, 2) + batch(2, 2)
    fetch = completed(raw[:-1])
    assert (offsets(fetch.take(10)), fetch.next_offset, fetch.is_consumed) == ([0, 1], 2, True)


def test_the_position_moves_behind_a_batch_without_its_last_record() -> None:
    fetch = completed(batch(0, 3, last=9))
    assert (offsets(fetch.take(10)), fetch.next_offset) == ([0, 1, 2], 10)


def test_the_position_moves_behind_an_empty_batch() -> None:
    empty = build_batch([], base_offset=0, last_offset=2)
    fetch = completed(empty)
    assert (fetch.take(10), fetch.next_offset, fetch.is_consumed) == ([], 3, True)


def test_the_position_has_the_epoch_of_the_last_record_taken() -> None:
    fetch = completed(batch(0, 2, epoch=1) + batch(2, 2, epoch=2))
    assert fetch.offset_epoch is None
    fetch.take(1)
    assert fetch.offset_epoch == 1
    fetch.take(2)
    assert fetch.offset_epoch == 2


def test_control_records_are_not_returned_but_move_the_position() -> None:
    fetch = completed(batch(0, 2, producer_id=1) + marker(2, 1, COMMIT))
    assert (offsets(fetch.take(10)), fetch.next_offset) == ([0, 1], 3)


def test_records_of_aborted_transactions_are_skipped() -> None:
    raw = batch(0, 2, producer_id=1) + batch(2, 2, producer_id=2) + marker(4, 1, ABORT) + batch(5, 1, producer_id=1)
    assert offsets(completed(raw, aborted=[(1, 0)]).take(10)) == [2, 3, 5]
    assert offsets(completed(raw).take(10)) == [0, 1, 2, 3, 5]


def test_only_aborted_records_still_move_the_position() -> None:
    fetch = completed(batch(0, 2, producer_id=1) + marker(2, 1, ABORT), aborted=[(1, 0)])
    assert (fetch.take(10), fetch.next_offset, fetch.is_consumed) == ([], 3, True)


def test_several_transactions_of_a_producer_are_told_apart() -> None:
    raw = (
        batch(0, 1, producer_id=1)
        + marker(1, 1, ABORT)
        + marker(2, 1, ABORT)
        + batch(3, 1, producer_id=1)
        + marker(4, 1, COMMIT)
        + batch(5, 1, producer_id=1)
        + marker(6, 1, ABORT)
    )
    assert offsets(completed(raw, aborted=[(1, 0), (1, 5)]).take(10)) == [3]


def test_an_aborted_transaction_whose_first_records_were_compacted_is_skipped() -> None:
    raw = batch(6, 1, producer_id=1) + batch(7, 1, producer_id=2) + marker(8, 1, ABORT)
    assert offsets(completed(raw, 6, aborted=[(1, 2)]).take(10)) == [7]


def test_the_rest_can_be_taken_undecoded() -> None:
    fetch = completed(batch(0, 3) + batch(3, 3))
    fetch.take(2)
    rest = fetch.take_raw()
    assert [record.offset for one in rest.batches() for record in one.records] == [2, 3, 4, 5]
    assert (fetch.next_offset, fetch.is_consumed) == (6, True)
