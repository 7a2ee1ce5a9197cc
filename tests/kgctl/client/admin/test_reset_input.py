"""Input for a reset: anything that cannot be parsed is refused in one sentence."""

from __future__ import annotations

import contextlib
import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgctl.client.admin.reset_input import Strategy, offsets_by_group, target_of, topic_partitions
from kgctl.client.admin.reset_targets import Target
from kgctl.client.net.errors import BadValue

MANY = "9" * 5_000


@pytest.mark.parametrize("strategy", ["to-offset", "shift-by"])
def test_a_number_with_thousands_of_digits_is_refused(strategy: Strategy) -> None:
    with pytest.raises(BadValue, match="is not a whole number"):
        target_of("g", strategy, MANY, 0)


@pytest.mark.parametrize("text", [f"P{MANY}D", f"PT{MANY}S", f"PT{MANY}.5S"])
def test_a_duration_with_thousands_of_digits_is_refused(text: str) -> None:
    with pytest.raises(BadValue, match="longer than any log"):
        target_of("g", "by-duration", text, 0)


@pytest.mark.parametrize(
    ("strategy", "text", "ms"),
    [
        ("to-datetime", "1969-12-31T23:59:59.999", 0),
        ("to-datetime", "1960-01-01T00:00:00", 0),
        ("by-duration", "P1000000D", 0),
        ("by-duration", "P99999999999999999D", 0),
        ("by-duration", "-P99999999999999999D", (1 << 63) - 1),
        ("by-duration", "PT1S", 1000),
    ],
)
def test_a_time_that_no_record_can_have_becomes_the_nearest_one(strategy: Strategy, text: str, ms: int) -> None:
    assert target_of("g", strategy, text, 2000) == Target("timestamp", ms)


def test_a_partition_with_thousands_of_digits_is_refused() -> None:
    assert topic_partitions("t:0,12") == ("t", (0, 12))
    with pytest.raises(BadValue, match="is not TOPIC or TOPIC:P"):
        topic_partitions(f"t:{MANY}")


@pytest.mark.parametrize("text", ["t,0," + "1" * 200_000, '"' + "t" * 200_000 + '",0,1'])
def test_a_file_with_a_field_too_large_for_the_csv_reader_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadValue, match="Cannot read"):
        target_of("g", "from-file", str(path), 0)


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 20)), min_size=1, max_size=8))
def test_ranges_and_single_partitions_name_the_same_partitions(ranges: list[tuple[int, int]]) -> None:
    text = ",".join(f"{first}-{first + more}" if more else f"{first}" for first, more in ranges)
    named = {number for first, more in ranges for number in range(first, first + more + 1)}
    assert topic_partitions(f"t:{text}") == ("t", tuple(sorted(named)))


@given(st.text(max_size=20))
def test_any_text_is_a_scope_or_refused(text: str) -> None:
    with contextlib.suppress(BadValue):
        name, numbers = topic_partitions(text)
        assert (name + ("" if numbers is None else ":")) == text[: len(name) + (numbers is not None)]


@pytest.mark.parametrize("text", ["t:5-0", "t:0-", "t:-5", "t:", ":0", "t:0-4-8", "t:0-9999999999", "t:0,,1"])
def test_a_range_that_is_unclear_or_too_large_is_refused(text: str) -> None:
    with pytest.raises(BadValue):
        topic_partitions(text)


NAMES = st.text(
    st.characters(codec="utf-8", exclude_characters="\r\n\x00\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"), min_size=1
)


@given(st.dictionaries(st.tuples(NAMES, NAMES, st.integers(0, 100)), st.integers(0, 1 << 62), min_size=1, max_size=10))
def test_a_plan_that_is_written_is_read_back(offsets: dict[tuple[str, str, int], int]) -> None:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows((*key, offset) for key, offset in offsets.items())
    plans = offsets_by_group(out.getvalue(), "-")
    assert {(group, *key): offset for group, plan in plans.items() for key, offset in plan.items()} == offsets
