"""The row of a group in listings and summaries."""

from __future__ import annotations

from typing import Any

from kgctl.model.failure import RowError
from kgctl.model.groups import Committed, GroupDescription, lag_rows
from kgctl.model.topic_partition import TopicPartition
from kgctl.watch.overview import overview

NOW = 1_000_000
GONE = RowError("UNKNOWN_TOPIC_OR_PARTITION", "no such topic")
DENIED = RowError("TOPIC_AUTHORIZATION_FAILED", "not authorised")


def group(ends: dict[tuple[str, int], int | RowError], **fields: Any) -> GroupDescription:
    """A group that has committed 10 in each of these partitions."""
    keys = {TopicPartition(*key): end for key, end in ends.items()}
    rows = lag_rows("g", (), dict.fromkeys(keys, Committed(10)), keys)
    return GroupDescription(group="g", type="Classic", state="Empty", partitions=rows, **fields)


def test_the_lag_is_the_sum_and_the_worst_partition_has_most_of_it() -> None:
    found = overview(group({("a", 0): 12, ("a", 1): 17, ("b", 0): 10}), NOW)
    assert (found.topics, found.partitions, found.lag) == (2, 3, 9)
    assert (found.worst_partition, found.worst_lag) == ("a-1", 7)


def test_a_commit_beyond_the_end_does_not_hide_lag_elsewhere() -> None:
    found = overview(group({("a", 0): 5, ("a", 1): 17}), NOW)
    assert (found.lag, found.worst_lag) == (7, 7)


def test_offsets_of_a_deleted_topic_are_no_failure_of_the_group() -> None:
    found = overview(group({("a", 0): GONE, ("b", 0): 12}), NOW)
    assert (found.lag, found.error) == (2, None)


def test_a_partition_that_cannot_be_read_is_an_error_beside_the_known_lag() -> None:
    found = overview(group({("a", 0): DENIED, ("b", 0): 12}), NOW)
    assert (found.lag, found.error) == (2, DENIED)
    assert overview(group({("a", 0): DENIED}), NOW).lag is None


def test_a_group_without_offsets_has_no_lag_and_a_share_group_an_unknown_one() -> None:
    assert overview(GroupDescription("g", type="Classic", state="Empty"), NOW).lag == 0
    assert overview(GroupDescription("g", type="Share", state="Empty"), NOW).lag is None


def test_the_age_of_the_last_commit_is_never_negative() -> None:
    at = {TopicPartition("a", 0): NOW - 5_000, TopicPartition("a", 1): NOW - 9_000}
    found = overview(group({("a", 0): 12}, committed_at=at), NOW)
    assert (found.last_commit_ms, found.last_commit_age_ms) == (NOW - 5_000, 5_000)
    ahead = overview(group({("a", 0): 12}, committed_at={TopicPartition("a", 0): NOW + 60_000}), NOW)
    assert ahead.last_commit_age_ms == 0


def test_a_group_that_could_not_be_described_keeps_its_error() -> None:
    found = overview(GroupDescription("g", state="Stable", error=DENIED), NOW)
    assert (found.state, found.members, found.lag, found.verdict, found.error) == (
        "Stable",
        None,
        None,
        "UNKNOWN",
        DENIED,
    )
