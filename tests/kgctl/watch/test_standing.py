"""The verdict from one snapshot: what it proves with and without times, and that it never guesses."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgctl.model.failure import RowError
from kgctl.model.groups import GroupDescription
from kgctl.model.health import Health
from kgctl.model.topic_partition import TopicPartition
from kgctl.watch.standing import doubtful, standing
from tests.kgctl.watch.snapshots import group, member, partition

NOW = 1_000_000_000
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


def ago(seconds: float, *keys: TopicPartition) -> dict[TopicPartition, int]:
    return {key: int(NOW - seconds * 1000) for key in keys or (P0,)}


def lagging(*lags: int, **fields: Any) -> GroupDescription:
    return group(partitions=[partition(n, 100, 100 + lag) for n, lag in enumerate(lags)], **fields)


EMPTY = {"state": "Empty", "members": ()}


@pytest.mark.parametrize(
    ("described", "committed_at", "unread_since", "expected"),
    [
        (GroupDescription("g", error=RowError("X", "down")), {}, {}, Health.UNKNOWN),
        (group("PreparingRebalance"), {}, {}, Health.REBALANCING),
        (group(members=[member("c", session_timeout_ms=10_000, heartbeat_age_ms=8_000)]), {}, {}, Health.SILENT),
        (lagging(0), {}, {}, Health.OK),
        (lagging(0), ago(86_400), {}, Health.OK),
        (lagging(-5), ago(86_400), {}, None),
        (lagging(-5, 7), ago(1, P0, P1), {}, None),
        (lagging(-5, 7), ago(3_600, P1), ago(100, P1), Health.STALLED),
        (lagging(-5, **EMPTY), ago(10), {}, None),
        (group(partitions=[partition(0, None, 100)]), {}, {}, None),
        (group(partitions=[partition(0, None, 0)]), {}, {}, Health.OK),
        (group(partitions=[partition(0, None, 100), partition(1, 100, 100)]), {}, {}, Health.OK),
        (lagging(7), {}, {}, None),
        (lagging(7), ago(89), {}, Health.OK),
        (lagging(7), ago(91), {}, None),
        (lagging(7), ago(3_600), ago(1), Health.OK),
        (lagging(7), {}, ago(1), Health.OK),
        (lagging(7), {}, ago(3_600), None),
        (lagging(7), ago(3_600), ago(91), Health.STALLED),
        (lagging(7, 7), ago(1, P0, P1), {}, Health.OK),
        (lagging(7, 7), ago(1, P0), {}, None),
        (lagging(7, 7), ago(1, P0) | ago(3_600, P1), ago(100, P1), Health.STALLED),
        (lagging(7, **EMPTY), {}, {}, None),
        (lagging(7, **EMPTY), ago(10), {}, Health.OK),
        (lagging(7, **EMPTY), ago(100), {}, Health.STOPPED),
        (lagging(7, **EMPTY), ago(100), ago(5), Health.LAGGING),
        (lagging(7, **EMPTY, state_since_ms=NOW - 5_000), {}, {}, Health.LAGGING),
        (lagging(7, **EMPTY, state_since_ms=NOW - 5_000), ago(6), {}, Health.LAGGING),
        (lagging(7, **EMPTY, state_since_ms=NOW - 500_000), {}, {}, Health.STOPPED),
        (lagging(7, **EMPTY, state_since_ms=NOW - 500_000), ago(501), {}, Health.STOPPED),
        (lagging(7, **EMPTY, state_since_ms=NOW - 500_000), ago(2), {}, Health.OK),
        (lagging(0, **EMPTY), {}, {}, Health.OK),
        (group(type="Share", partitions=()), {}, {}, Health.OK),
    ],
)
def test_one_snapshot_proves(
    described: GroupDescription,
    committed_at: dict[TopicPartition, int],
    unread_since: dict[TopicPartition, int],
    expected: Health | None,
) -> None:
    found = standing(described, NOW, committed_at, unread_since)
    assert found.health == expected, found.reason
    assert found.reason


def test_the_age_of_the_commit_is_that_of_the_newest_one() -> None:
    assert standing(lagging(7, 7), NOW, ago(3, P0) | ago(60, P1), {}).reason == "lag 14; committed 3.0 s ago"


def test_a_reason_has_the_figures() -> None:
    assert standing(lagging(7), NOW, ago(3_600), ago(600)).reason == (
        "orders 0 (owned by c-1): last commit 60 min ago, lag 7, oldest unread record from 10 min ago"
    )


def test_a_clock_that_is_ahead_makes_nothing_old() -> None:
    assert standing(lagging(7), NOW, ago(-600)).health is Health.OK
    assert standing(lagging(7, 1), NOW, ago(-600, P0) | ago(-599, P1)).health is Health.OK


def test_a_partition_of_a_topic_that_the_group_has_left_does_not_count() -> None:
    left = partition(0, 100, 900, owner=None, topic="old")
    described = group(partitions=[partition(0, 5, 5), left], subscribed=frozenset({"orders"}))
    key = TopicPartition("old", 0)
    assert standing(described, NOW, {key: 1}, {key: 1}).health is Health.OK
    assert doubtful(described, NOW, {key: 1}) == {}


def test_only_partitions_with_lag_and_an_old_commit_are_doubtful() -> None:
    described = lagging(7, 0, 5)
    assert doubtful(described, NOW, ago(100, P0) | ago(100, P1)) == {P0: 100, TopicPartition("orders", 2): 100}
    assert doubtful(described, NOW, ago(5, P0, P1, TopicPartition("orders", 2))) == {}


TIMES = st.dictionaries(st.sampled_from([P0, P1]), st.integers(0, 2 * NOW))


@given(st.lists(st.integers(-9, 9), max_size=3), TIMES, TIMES, st.booleans())
def test_no_alarm_without_unread_records(
    lags: list[int], committed_at: dict[TopicPartition, int], unread: dict[TopicPartition, int], is_empty: bool
) -> None:
    described = lagging(*lags, **(EMPTY if is_empty else {}))
    found = standing(described, NOW, committed_at, unread)
    if all(lag <= 0 for lag in lags):
        assert found.health is (None if min(lags, default=0) < 0 else Health.OK)
    if found.health is Health.STALLED:
        assert any(lag > 0 and key in committed_at and key in unread for lag, key in zip(lags, [P0, P1], strict=False))
