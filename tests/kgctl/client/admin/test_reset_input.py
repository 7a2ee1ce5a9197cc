"""Input for a reset: anything that cannot be parsed is refused in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgctl.client.admin.reset_input import Strategy, target_of, topic_partitions
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
