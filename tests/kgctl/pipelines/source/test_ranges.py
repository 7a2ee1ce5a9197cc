"""Ranges are split without gaps, and a limit is distributed exactly and in proportion."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.source.ranges import OffsetRange, from_json, share, split, to_json

sizes = st.lists(st.integers(0, 10_000), min_size=1, max_size=8)


def ranges(sizes: list[int]) -> list[OffsetRange]:
    return [OffsetRange(TopicPartition("t", n), 100 * n, 100 * n + size) for n, size in enumerate(sizes)]


@given(sizes=sizes, wanted=st.none() | st.integers(1, 50), most=st.none() | st.integers(1, 5000))
def test_pieces_cover_each_range_once_and_in_order(sizes: list[int], wanted: int | None, most: int | None) -> None:
    pieces = split(ranges(sizes), wanted, most)
    assert all(piece.size for piece in pieces)
    assert most is None or all(piece.size <= most for piece in pieces)
    for whole in ranges(sizes):
        position = whole.start
        for piece in (piece for piece in pieces if piece.partition == whole.partition):
            assert piece.start == position
            position = piece.end
        assert position == whole.end


def test_larger_ranges_are_split_into_more_pieces() -> None:
    pieces = split(ranges([8000, 2000]), 10)
    assert [piece.partition.partition for piece in pieces] == [0] * 8 + [1] * 2
    assert {piece.size for piece in pieces} == {1000}
    assert len(split(ranges([8000, 2000]), 2)) == 2


@given(sizes=sizes, most=st.integers(1, 5000))
def test_a_limit_is_used_completely_and_no_partition_gets_more_than_it_has(sizes: list[int], most: int) -> None:
    wholes = ranges(sizes)
    ends = share(wholes, most)
    taken = {one.partition: ends[one.partition] - one.start for one in wholes}
    assert sum(taken.values()) == min(most, sum(sizes))
    for one in wholes:
        assert 0 <= taken[one.partition] <= one.size
        exact = one.size * most / max(1, sum(sizes))
        assert abs(taken[one.partition] - min(one.size, exact)) <= 1


def test_a_small_partition_gets_its_turn() -> None:
    big, small = OffsetRange(TopicPartition("t", 0), 0, 10**9), OffsetRange(TopicPartition("t", 1), 0, 1)
    batches = 0
    while small.size:
        ends = share([big, small], 10**8)
        big, small = (OffsetRange(one.partition, ends[one.partition], one.end) for one in (big, small))
        batches += 1
    assert batches <= 10


def test_offsets_have_the_form_of_sparks_source() -> None:
    offsets = {TopicPartition("b", 10): 5, TopicPartition("a", 1): 2**40, TopicPartition("b", 9): 0}
    assert to_json(offsets) == {"a": {"1": 2**40}, "b": {"9": 0, "10": 5}}
    assert list(to_json(offsets)["b"]) == ["9", "10"]
    assert from_json(to_json(offsets)) == offsets
