"""Combined batches give each offset the state that went furthest, as Kafka's combiner does.

`combined.txt` was recorded with PersisterStateBatchCombiner of Kafka 4.1: batches, start offset and result, separated by bars.
"""

from __future__ import annotations

from itertools import groupby, pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from broker.cores.share.state_batches import NO_START_OFFSET, StateBatch, combine

RECORDED = (Path(__file__).parent / "combined.txt").read_text().splitlines()
batches = st.lists(
    st.builds(
        lambda first, more, state, count: StateBatch(first, first + more, state, count),
        st.integers(0, 25),
        st.integers(0, 8),
        st.sampled_from([0, 2, 4]),
        st.integers(1, 3),
    ),
    max_size=8,
)


def states(found: list[StateBatch]) -> dict[int, tuple[int, int]]:
    """The delivery count and state of each offset; the highest if there are several."""
    out: dict[int, tuple[int, int]] = {}
    for first, last, state, count in found:
        for offset in range(first, last + 1):
            out[offset] = max(out.get(offset, (0, 0)), (count, state))
    return out


def whole(found: list[StateBatch]) -> list[StateBatch]:
    """The batches with adjacent ones that are alike as one; Kafka sometimes leaves them apart."""
    offsets = sorted(states(found).items())
    runs = groupby(enumerate(offsets), key=lambda one: (one[1][0] - one[0], one[1][1]))
    return [
        StateBatch(run[0][1][0], run[-1][1][0], state, count)
        for (_, (count, state)), group in runs
        if (run := list(group))
    ]


def parsed(text: str) -> list[StateBatch]:
    return [StateBatch(*map(int, word.split(","))) for word in text.split()]


def test_the_recorded_batches_combine_as_in_kafka() -> None:
    for line in RECORDED:
        given_batches, start_offset, combined = line.split("|")
        assert combine(parsed(given_batches), int(start_offset)) == whole(parsed(combined)), line


@given(batches, st.sampled_from([NO_START_OFFSET, 0, 5, 20, 100]))
def test_each_offset_keeps_the_state_that_went_furthest(found: list[StateBatch], start_offset: int) -> None:
    combined = combine(found, start_offset)
    assert states(combined) == {offset: state for offset, state in states(found).items() if offset >= start_offset}
    assert all(one.last_offset < other.first_offset for one, other in pairwise(combined))
    assert whole(combined) == combined
    assert combine(combined, start_offset) == combined
