"""Lag in time: rates, time lag, time to drain and retention headroom, each with its confidence, and `None` rather than a guess."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgctl.model.failure import RowError
from kgctl.model.groups import GroupDescription
from kgctl.model.lag import Confidence, LagFacts, LagRow, Retention
from kgctl.model.topic_partition import TopicPartition
from kgctl.watch.lag import GROUP, GROUPINGS, MEMBER, TOPIC, Sample, lag_rows, summed
from tests.kgctl.watch.snapshots import group, member, partition

NOW = 1_700_000_000_000
KEY = TopicPartition("orders", 0)
HIGH, MEDIUM, LOW = Confidence.HIGH, Confidence.MEDIUM, Confidence.LOW
FACTS = LagFacts(NOW, log_starts={KEY: 0}, retention={"orders": Retention(age_ms=1_000_000)})


def sample(at_s: float, commit: int | None, end: int | None, committed_s: float | None = None) -> Sample:
    times = {} if committed_s is None else {KEY: int(committed_s * 1000)}
    return Sample(at_s, NOW, {"g": group(partitions=[partition(0, commit, end)], committed_at=times)})


def row_of(*samples: Sample, facts: LagFacts = FACTS) -> LagRow:
    (row,) = lag_rows(samples, facts)
    return row


def rates(*samples: Sample) -> tuple[Any, Any, Any]:
    row = row_of(*samples)
    return row.rate_in, row.rate_out, row.eta_s


@pytest.mark.parametrize(
    ("samples", "expected", "confidence"),
    [
        ([sample(0, 10, 30)], (None, None, None), {}),
        (
            [sample(0, 10, 30), sample(5, 10, 40)],
            (2.0, None, None),
            {"rate_in": MEDIUM},
        ),
        (
            [sample(0, 10, 30), sample(5, 60, 70)],
            (8.0, 10.0, 5.0),
            {"rate_in": MEDIUM, "rate_out": LOW, "eta_s": LOW},
        ),
        (
            [sample(0, 0, 100), sample(1, 10, 100), sample(2, 10, 100), sample(3, 30, 100)],
            (0.0, 10.0, 7.0),
            {"rate_in": MEDIUM, "rate_out": MEDIUM, "eta_s": MEDIUM},
        ),
        (
            [sample(0, 0, 100, 100), sample(5, 50, 100, 102.5)],
            (0.0, 20.0, 2.5),
            {"rate_in": MEDIUM, "rate_out": MEDIUM, "eta_s": MEDIUM},
        ),
        (
            [sample(0, 0, 400, 100), sample(40, 300, 400, 130)],
            (0.0, 10.0, 10.0),
            {"rate_in": HIGH, "rate_out": HIGH, "eta_s": HIGH},
        ),
        (
            [sample(0, 50, 50), sample(5, 50, 50)],
            (0.0, 0.0, 0.0),
            {"rate_in": MEDIUM, "rate_out": MEDIUM, "eta_s": HIGH},
        ),
        ([sample(0, 9, 50), sample(95, 9, 50)], (0.0, 0.0, None), {"rate_in": HIGH, "rate_out": HIGH}),
        ([sample(0, 10, 30), sample(5, 5, 30)], (0.0, None, None), {"rate_in": MEDIUM}),
        ([sample(0, 10, 30), sample(5, 10, 20)], (None, None, None), {}),
        ([sample(0, None, 30), sample(5, 10, 40)], (2.0, None, None), {"rate_in": MEDIUM}),
        ([sample(0, 10, None), sample(5, 20, None)], (None, 2.0, None), {"rate_out": LOW}),
    ],
)
def test_rates(samples: list[Sample], expected: tuple[Any, Any, Any], confidence: Mapping[str, Confidence]) -> None:
    row = row_of(*samples)
    assert (row.rate_in, row.rate_out, row.eta_s) == expected
    known = {name: sure for name, sure in row.confidence.items() if name in ("rate_in", "rate_out", "eta_s")}
    assert known == confidence


def test_a_commit_after_a_long_idle_time_is_only_an_estimate() -> None:
    row = row_of(sample(0, 0, 100, 0), sample(5, 50, 100, 3_600))
    assert (row.rate_out, row.confidence["rate_out"]) == (10.0, LOW)


def test_rates_that_hardly_differ_give_an_estimate() -> None:
    row = row_of(sample(0, 0, 1_000, 10), sample(40, 4_100, 5_000, 50))
    assert (row.rate_in, row.rate_out, row.confidence["eta_s"]) == (100.0, 102.5, LOW)


def times(row: LagRow) -> tuple[int | None, int | None, int | None]:
    return row.time_lag_ms, row.span_ms, row.headroom_ms


def facts(written_ago_s: float | None, at: int = 10, newest_ago_s: float | None = None, **fields: Any) -> LagFacts:
    written = {} if written_ago_s is None else {("orders", 0, at): int(NOW - written_ago_s * 1000)}
    newest = {} if newest_ago_s is None else {KEY: int(NOW - newest_ago_s * 1000)}
    return replace(FACTS, record_times=written, newest=newest, **fields)


@pytest.mark.parametrize(
    ("commit", "found", "expected"),
    [
        (30, facts(None), (0, 0, None)),
        (10, facts(None), (None, None, None)),
        (10, facts(60), (60_000, None, 940_000)),
        (10, facts(60, newest_ago_s=20), (60_000, 40_000, 940_000)),
        (10, facts(-5), (None, None, 1_005_000)),
        (10, facts(60, retention={}), (60_000, None, None)),
        (10, facts(60, retention={"orders": Retention()}), (60_000, None, None)),
        (10, facts(2_000), (2_000_000, None, 0)),
        (10, facts(60, at=20, log_starts={KEY: 20}), (60_000, None, 940_000)),
        (40, facts(60), (None, None, None)),
        (None, facts(60), (None, None, None)),
        (10, facts(60, retention={"orders": Retention(1_000_000, 5_000)}), (60_000, None, None)),
    ],
)
def test_times(commit: int | None, found: LagFacts, expected: tuple[int | None, ...]) -> None:
    assert times(row_of(sample(0, commit, 30), facts=found)) == expected


def test_timestamps_of_brokers_are_sure_and_those_of_producers_less() -> None:
    by_producers = row_of(sample(0, 10, 30), facts=facts(60))
    by_brokers = row_of(
        sample(0, 10, 30), facts=facts(60, retention={"orders": Retention(1_000_000, is_append_time=True)})
    )
    assert by_producers.confidence == {"time_lag_ms": MEDIUM, "headroom_ms": MEDIUM}
    assert by_brokers.confidence == {"time_lag_ms": HIGH, "headroom_ms": HIGH}


def test_the_size_limit_counts_with_a_rate_and_the_size_of_the_log() -> None:
    limit = facts(60, retention={"orders": Retention(1_000_000, 5_000)}, log_bytes={KEY: 3_000}, at=20)
    row = row_of(sample(0, 20, 20), sample(5, 20, 30), facts=limit)
    # 100 bytes per record, of which 10 are unread: room for 40 more at 2/s.
    assert (row.headroom_ms, row.confidence["headroom_ms"], row.note) == (20_000, LOW, None)
    unknown = row_of(sample(0, 20, 30), facts=limit)
    assert (unknown.headroom_ms, unknown.note) == (None, "retention.bytes=5000 limits the log")


@pytest.mark.parametrize(
    ("described", "found", "note"),
    [
        (sample(0, 40, 30), FACTS, "the commit is 10 records past the end of the log"),
        (
            sample(0, 5, 30),
            replace(FACTS, log_starts={KEY: 6}),
            "1 unread record deleted",
        ),
        (sample(0, 10, 30), FACTS, None),
    ],
)
def test_notes(described: Sample, found: LagFacts, note: str | None) -> None:
    assert row_of(described, facts=found).note == note


def test_two_groups_on_one_partition_are_not_mixed_up() -> None:
    one = replace(group(partitions=[partition(0, 10, 30)]), group="one")
    one = replace(one, partitions=tuple(replace(row, group="one") for row in one.partitions))
    two = replace(one, group="two", partitions=(replace(one.partitions[0], group="two", current_offset=20, lag=10),))
    known = replace(FACTS, record_times={("orders", 0, 10): NOW - 9_000, ("orders", 0, 20): NOW - 4_000})
    rows = lag_rows([Sample(0, NOW, {"two": two, "one": one})], known)
    assert [(row.group, row.lag, row.time_lag_ms) for row in rows] == [("one", 20, 9_000), ("two", 10, 4_000)]


def rows_of_a_group() -> list[LagRow]:
    described = group(
        members=[member("c-1", [0, 1]), member("c-2", [2])],
        partitions=[
            partition(0, 10, 30),
            partition(1, 30, 30),
            partition(2, 10, 40, owner="c-2"),
            partition(0, 7, 3, owner="c-2", topic="payments"),
        ],
    )
    known = replace(
        FACTS,
        log_starts={},
        record_times={("orders", 0, 10): NOW - 9_000, ("orders", 2, 10): NOW - 5_000},
    )
    return lag_rows([Sample(0, NOW, {"g": described})], known)


def test_sums_take_the_worst_times() -> None:
    (total,) = summed(rows_of_a_group(), GROUP)
    assert (total.partitions, total.lag, total.time_lag_ms, total.headroom_ms) == (4, 50, None, None)
    by_topic = {row.topic: row for row in summed(rows_of_a_group(), TOPIC)}
    assert (by_topic["orders"].lag, times(by_topic["orders"])) == (50, (9_000, None, 991_000))
    assert (by_topic["payments"].lag, times(by_topic["payments"])) == (0, (None, None, None))
    by_member = {row.consumer_id: row for row in summed(rows_of_a_group(), MEMBER)}
    assert (by_member["c-1"].lag, by_member["c-1"].time_lag_ms, by_member["c-2"].lag) == (20, 9_000, 30)


def test_a_sum_says_what_it_leaves_out() -> None:
    described = group(partitions=[partition(0, 10, 30), partition(1, None, 30)])
    (total,) = summed(lag_rows([Sample(0, NOW, {"g": described})], facts(60)), GROUP)
    assert (total.lag, total.time_lag_ms, total.note) == (20, None, "the lag of 1 partition is not known")


def test_a_sum_of_rates_is_not_known_if_one_of_them_is_not() -> None:
    first = group(partitions=[partition(0, 10, 30), partition(1, 10, 30)])
    last = group(partitions=[partition(0, 20, 40), partition(1, 20, None)])
    rows = lag_rows([Sample(0, NOW, {"g": first}), Sample(5, NOW, {"g": last})], FACTS)
    assert [row.rate_in for row in rows] == [2.0, None]
    assert [row.rate_in for row in summed(rows, GROUP)] == [None]


@pytest.mark.parametrize("by", GROUPINGS)
def test_a_group_that_failed_keeps_its_error(by: str) -> None:
    failed = GroupDescription("h", error=RowError("X", "down"))
    rows = lag_rows([Sample(0, NOW, {"h": failed, "g": group(partitions=[partition(0, 1, 2)])})], FACTS)
    assert [(row.group, row.error and row.error.name) for row in summed(rows, by)] == [("g", None), ("h", "X")]


OFFSETS = st.one_of(st.none(), st.integers(0, 100))


@given(st.lists(st.tuples(OFFSETS, OFFSETS), min_size=1, max_size=4), st.integers(-99, 9_999), OFFSETS)
def test_no_value_is_negative_and_each_has_a_confidence(
    course: list[tuple[int | None, int | None]], written_ago_s: int, start: int | None
) -> None:
    samples = [sample(float(at), commit, end) for at, (commit, end) in enumerate(course)]
    commit = course[-1][0]
    known = facts(written_ago_s, at=max(commit or 0, start or 0), log_starts={} if start is None else {KEY: start})
    row = row_of(*samples, facts=known)
    values = {
        name: getattr(row, name) for name in ("rate_in", "rate_out", "time_lag_ms", "span_ms", "eta_s", "headroom_ms")
    }
    assert all(value is None or value >= 0 for value in values.values())
    assert row.confidence.keys() == {name for name, value in values.items() if value is not None}
    if row.lag is None or row.lag < 0:
        assert values["time_lag_ms"] is values["eta_s"] is values["headroom_ms"] is None
