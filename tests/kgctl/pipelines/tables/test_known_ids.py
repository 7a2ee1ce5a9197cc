"""A set of batch ids forgets none, and stays small."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from kgctl.pipelines.tables.known_ids import KnownIds, known_ids

IDS = st.one_of(
    st.builds(lambda number: f"decode-0a1b2c3d-{number:06d}", st.integers(0, 40)),
    st.builds(lambda number: f"lag-{number}", st.integers(0, 40)),
    st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9._=-]{0,6}", fullmatch=True),
)


@settings(max_examples=40)
@given(st.lists(st.lists(IDS)), st.lists(IDS))
def test_it_knows_exactly_what_was_added(steps: list[list[str]], others: list[str]) -> None:
    known, expected = KnownIds(), set[str]()
    for step in steps:
        known, expected = known.with_ids(step), expected | set(step)
    assert known == known_ids(json.loads(json.dumps(known.to_json())))
    assert len(known) == len(expected)
    for one in [*expected, *others]:
        assert (one in known) == (one in expected)


def test_many_batches_of_a_stream_are_one_range() -> None:
    known = KnownIds()
    for start in range(0, 100_000, 10_000):
        known = known.with_ids(f"decode-0a1b2c3d-{number:06d}" for number in range(start, start + 10_000))
    assert known.to_json() == [["decode-0a1b2c3d-", 6, [0, 99_999]]]
    assert len(known) == 100_000
