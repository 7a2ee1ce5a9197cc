"""The verdict from one snapshot: what it proves with and without times, and that it never guesses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgctl.model.failure import RowError
from kgctl.model.groups import GroupDescription
from kgctl.model.health import Health
from kgctl.model.topic_partition import TopicPartition
from kgctl.model.watched import Snapshot
from kgctl.watch.groups import GroupsWatch
from kgctl.watch.standing import standing
from tests.kgctl.watch.snapshots import group, member, partition

NOW = 1_000_000_000
P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


def ago(seconds: float, *keys: TopicPartition) -> dict[TopicPartition, int]:
    return {key: int(NOW - seconds * 1000) for key in keys or (P0,)}


def at_now(described: GroupDescription) -> GroupDescription:
    """A group whose coordinator reports its clock, which is right."""
    return replace(described, clock_ms=NOW)


def lagging(*lags: int, **fields: Any) -> GroupDescription:
    return group(partitions=[partition(n, 100, 100 + lag) for n, lag in enumerate(lags)], **fields)


EMPTY = {"state": "Empty", "members": ()}


def uncommitted(stable_s: float, waited_s: float | None) -> GroupDescription:
    """A group without any commit, whose first record, at offset 60 of 100, was written `waited_s` seconds ago."""
    since = {} if waited_s is None else ago(waited_s)
    rows = [partition(0, None, 100)]
    return group(partitions=rows, state_since_ms=int(NOW - stable_s * 1000), unread_from={P0: 60}, unread_since=since)


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
        (group(partitions=[partition(0, None, 0)]), {}, {}, Health.OK),
        (group(partitions=[partition(0, None, 100), partition(1, 100, 100)]), {}, {}, Health.OK),
        (lagging(7), {}, {}, None),
        (lagging(7), ago(1), {}, None),
        (lagging(7), ago(1), ago(89), Health.OK),
        (lagging(7), ago(1), ago(91), None),
        (lagging(7), ago(3_600), ago(1), Health.OK),
        (lagging(7), {}, ago(1), Health.OK),
        (lagging(7), {}, ago(3_600), None),
        (lagging(7), ago(3_600), ago(91), Health.STALLED),
        (lagging(7, 7), ago(1, P0, P1), ago(1, P0, P1), Health.OK),
        (lagging(7, 7), ago(1, P0, P1), ago(1, P0), None),
        (lagging(7, 7), ago(1, P0) | ago(3_600, P1), ago(100, P1), Health.STALLED),
        (lagging(7, **EMPTY), {}, {}, None),
        (lagging(7, **EMPTY), ago(10), {}, None),
        (lagging(7, **EMPTY), ago(100), {}, Health.STOPPED),
        (lagging(7, **EMPTY), ago(100), ago(5), None),
        (lagging(7, **EMPTY, state_since_ms=NOW - 5_000), {}, {}, None),
        (lagging(7, **EMPTY, state_since_ms=NOW - 5_000), ago(600), {}, None),
        (lagging(7, **EMPTY, state_since_ms=NOW - 500_000), {}, {}, Health.STOPPED),
        (lagging(7, **EMPTY, state_since_ms=NOW - 500_000), ago(501), {}, Health.STOPPED),
        (lagging(7, **EMPTY, state_since_ms=NOW - 500_000), ago(2), {}, None),
        (lagging(0, **EMPTY), {}, {}, Health.OK),
        (lagging(0, **EMPTY), ago(23 * 3_600), {}, Health.OK),
        (lagging(0, **EMPTY), ago(25 * 3_600), {}, Health.UNUSED),
        (lagging(7, **EMPTY), ago(25 * 3_600), {}, Health.UNUSED),
        (lagging(7, **EMPTY, state_since_ms=NOW - 3_600_000), ago(25 * 3_600), {}, Health.STOPPED),
        (group(**EMPTY, state_since_ms=NOW - 90_000_000), {}, {}, Health.UNUSED),
        (uncommitted(stable_s=91, waited_s=91), {}, {}, Health.NEVER_COMMITTED),
        (uncommitted(stable_s=89, waited_s=91), {}, {}, None),
        (uncommitted(stable_s=91, waited_s=3), {}, {}, None),
        (uncommitted(stable_s=91, waited_s=None), {}, {}, None),
        (group(type="Share", partitions=()), {}, {}, None),
    ],
)
def test_one_snapshot_proves(
    described: GroupDescription,
    committed_at: dict[TopicPartition, int],
    unread_since: dict[TopicPartition, int],
    expected: Health | None,
) -> None:
    found = standing(at_now(described), NOW, committed_at, unread_since)
    assert found.health == expected, found.reason
    assert found.reason


def partly(commit: int | None, **fields: Any) -> GroupDescription:
    """A group with an offset of 100 in one partition, and with this one in another that ends at 120."""
    return group(partitions=[partition(0, 100, 107), partition(1, commit, 120)], **fields)


@pytest.mark.parametrize(
    ("described", "recent_from", "committed_at", "expected"),
    [
        (lagging(7), {P0: 100}, {}, Health.OK),
        (lagging(7), {P0: 99}, ago(1), Health.OK),
        (lagging(7), {P0: 101}, ago(1), None),
        (lagging(7), {}, ago(1), None),
        # A commit beyond records of the last moments is not older than they are: the clock of a producer is ahead.
        (lagging(7), {P0: 99}, ago(91), None),
        (lagging(7), {P0: 100}, ago(3_600), Health.OK),
        (lagging(7, 7), {P0: 100, P1: 100}, ago(1, P0, P1), Health.OK),
        (lagging(7, 7), {P0: 100}, ago(1, P0, P1), None),
        (lagging(7, 0), {P0: 100}, ago(1, P0, P1), Health.OK),
        (partly(None, unread_from={P1: 110}), {P0: 100, P1: 110}, ago(1), Health.OK),
        (partly(None, unread_from={P1: 110}), {P0: 100, P1: 111}, ago(1), None),
        (partly(None), {P0: 100, P1: 110}, ago(1), None),
        (lagging(7, **EMPTY), {P0: 100}, ago(1), None),
        (lagging(7, **EMPTY), {P0: 100}, ago(100), Health.STOPPED),
    ],
)
def test_offsets_past_all_older_records_prove_that_a_group_keeps_up(
    described: GroupDescription,
    recent_from: dict[TopicPartition, int],
    committed_at: dict[TopicPartition, int],
    expected: Health | None,
) -> None:
    found = standing(at_now(replace(described, recent_from=recent_from)), NOW, committed_at, described.unread_since)
    assert found.health == expected, found.reason
    assert found.health is None or expected is not Health.OK or "no unread record is older than 90 s" in found.reason


@pytest.mark.parametrize(
    ("recent_from", "commit_s", "expected"),
    [
        ({P0: 102}, 91, Health.STALLED),
        ({P0: 102}, 89, None),
        # The position may hold the end of a transaction, which consumers do not read.
        ({P0: 101}, 3_600, None),
        ({P0: 100}, 3_600, Health.OK),
        ({}, 3_600, None),
    ],
)
def test_old_records_that_wait_for_a_commit_prove_that_a_group_is_stalled(
    recent_from: dict[TopicPartition, int], commit_s: float, expected: Health | None
) -> None:
    found = standing(at_now(replace(lagging(7), recent_from=recent_from)), NOW, ago(commit_s))
    assert found.health == expected, found.reason
    assert expected is not Health.STALLED or "no commit for 91 s, lag 7" in found.reason


def test_an_old_unread_record_outweighs_where_recent_records_begin() -> None:
    described = at_now(replace(lagging(7), recent_from={P0: 100}))
    assert standing(described, NOW, ago(1), ago(91)).health is None


def test_a_reason_has_the_figures() -> None:
    found = standing(at_now(lagging(7, 7)), NOW, ago(3, P0) | ago(60, P1))
    assert found.reason == "lag 14, last commit 3.0 s ago; whether it grows is not known yet"
    assert standing(at_now(lagging(7)), NOW, ago(3_600), ago(600)).reason == (
        "orders 0 (owned by c-1): no commit for 60 min, lag 7, oldest unread record from 10 min ago"
    )
    found = standing(at_now(uncommitted(stable_s=600, waited_s=600)), NOW)
    assert found.reason == ("no commit at all, up to 40 unread records from the start of the log; Stable for 10 min")
    assert found.uncommitted_records == 40


@pytest.mark.parametrize("skew_s", [-100_000, -100, 0, 100, 100_000])
def test_our_own_clock_makes_nothing_old(skew_s: int) -> None:
    wall_ms = NOW + skew_s * 1000
    commit, unread = ago(1), ago(2)
    assert standing(lagging(7), wall_ms, commit, unread).health in (None, Health.OK)
    assert standing(lagging(7, **EMPTY), wall_ms, commit, unread).health is None
    assert standing(lagging(7, **EMPTY, state_since_ms=NOW), wall_ms, commit).health is None
    assert standing(lagging(0, **EMPTY), wall_ms, commit).health is Health.OK
    assert standing(uncommitted(1, 1), wall_ms).health is None
    # The coordinator's clock counts, and so does what another coordinator has reported.
    for described in (at_now(lagging(7)), lagging(7)):
        assert standing(described, wall_ms, ago(91), ago(92), cluster_ms=NOW).health is Health.STALLED


def test_a_partition_of_a_topic_that_the_group_has_left_does_not_count() -> None:
    left = partition(0, 100, 900, owner=None, topic="old")
    described = group(partitions=[partition(0, 5, 5), left], subscribed=frozenset({"orders"}))
    key = TopicPartition("old", 0)
    assert standing(described, NOW, {key: 1}, {key: 1}).health is Health.OK


TIMES = st.dictionaries(st.sampled_from([P0, P1]), st.integers(0, 2 * NOW))


@given(st.lists(st.integers(-9, 9), max_size=3), TIMES, TIMES, st.booleans())
def test_no_alarm_without_unread_records(
    lags: list[int], committed_at: dict[TopicPartition, int], unread: dict[TopicPartition, int], is_empty: bool
) -> None:
    described = lagging(*lags, **(EMPTY if is_empty else {}))
    found = standing(described, NOW, committed_at, unread)
    if all(lag <= 0 for lag in lags):
        is_known = bool(lags) or not is_empty
        assert found.health is (Health.OK if is_known and min(lags, default=0) >= 0 else None)
    if found.health is Health.STALLED:
        assert any(lag > 0 and key in committed_at and key in unread for lag, key in zip(lags, [P0, P1], strict=False))


def test_a_faster_snapshot_of_the_group_alone_does_not_hide_what_that_of_all_groups_proves() -> None:
    alone = at_now(replace(lagging(7), committed_at=ago(91)))
    watch = GroupsWatch()
    watch.tracker("g").add(2.0, NOW, alone)
    (row,) = watch.add(Snapshot(1.0, NOW, {"g": replace(alone, recent_from={P0: 102})}))
    assert row.health is Health.STALLED


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 200), st.integers(95, 112)), min_size=1, max_size=2),
    st.booleans(),
)
def test_a_new_dashboard_judges_as_the_commands_do(rows: list[tuple[int, int, int]], has_members: bool) -> None:
    found = lagging(*(lag for lag, _, _ in rows), **({} if has_members else EMPTY))
    keys = [P0, P1][: len(rows)]
    found = at_now(
        replace(
            found,
            committed_at={key: NOW - age_s * 1000 for key, (_, age_s, _) in zip(keys, rows, strict=True)},
            recent_from={key: start for key, (_, _, start) in zip(keys, rows, strict=True)},
        )
    )
    (row,) = GroupsWatch().add(Snapshot(0.0, NOW, {"g": found}))
    assert row.health == standing(found, NOW).health
