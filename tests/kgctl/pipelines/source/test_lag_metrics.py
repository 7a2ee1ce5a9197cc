"""How far a query is behind, from the offsets of a progress event."""

from __future__ import annotations

import pytest

from kgctl.pipelines.source.lag_metrics import behind_latest

LATEST, REACHED = {"a": {"0": 10, "1": 7}, "b": {"0": 3}}, {"a": {"0": 8, "1": 7}}


@pytest.mark.parametrize(
    ("latest", "reached"),
    [(LATEST, REACHED), ('{"a": {"0": 10, "1": 7}, "b": {"0": 3}}', '{"a": {"0": 8, "1": 7}}')],
    ids=["objects", "texts"],
)
def test_partitions_are_behind_by_what_the_log_has_more(latest: object, reached: object) -> None:
    behind = behind_latest({"latestOffset": latest, "endOffset": reached})
    assert behind is not None
    assert behind.partitions == {"a": {0: 2, 1: 0}, "b": {0: 3}}
    assert behind.waiting() == {"a": {"0": 2}, "b": {"0": 3}}
    assert behind.total == 5
    assert behind.metrics() == {
        "minOffsetsBehindLatest": "0",
        "maxOffsetsBehindLatest": "3",
        "avgOffsetsBehindLatest": str(5 / 3),
    }


def test_nothing_is_known_before_the_ends_are() -> None:
    assert behind_latest({"latestOffset": None, "endOffset": REACHED}) is None
    assert behind_latest({}) is None
