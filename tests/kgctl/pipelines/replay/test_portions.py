"""How many files are open at the same time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.archive.layout import ArchivedFile
from kgctl.pipelines.replay.portions import most_open, portions


def file(first: int, last: int) -> ArchivedFile:
    return ArchivedFile("", "orders", 0, first, last, 1, 1, "", 0, 0)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 8)), max_size=8), st.integers(0, 25))
def test_files_are_open_at_the_same_time_if_their_offsets_overlap(ranges: list[tuple[int, int]], start: int) -> None:
    files = [file(first, first + length) for first, length in sorted(ranges)]
    left = [one for one in files if one.last_offset >= start]
    at_each = [sum(one.first_offset <= at <= one.last_offset for one in left) for at in range(30)]
    assert most_open(files, start) == max(at_each)


@given(st.lists(st.integers(0, 7), max_size=20), st.integers(1, 9))
def test_portions_have_all_partitions_in_order_and_few_files(counts: list[int], most: int) -> None:
    of = {TopicPartition("orders", number): count for number, count in enumerate(counts)}
    found = list(portions(of, most))
    assert [one for some in found for one in some] == sorted(of)
    assert all(sum(of[one] for one in some) <= most or len(some) == 1 for some in found)
    totals = [sum(of[one] for one in some) for some in found]
    assert all(total + of[after[0]] > most for total, after in zip(totals, found[1:], strict=False))
