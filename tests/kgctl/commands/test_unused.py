"""When a group was last used: only what is proven counts."""

from __future__ import annotations

import pytest

from kgctl.model.groups import CLASSIC, CONSUMER, GroupDescription, PartitionLag
from kgctl.model.topic_partition import TopicPartition

KEY, OTHER = TopicPartition("t", 0), TopicPartition("t", 1)


def offset(key: TopicPartition) -> PartitionLag:
    return PartitionLag("g", *key, None, 5, 5, 0, None, None, None)


@pytest.mark.parametrize(
    ("protocol", "since", "times", "expected"),
    [
        ("consumer", 900, {KEY: 100, OTHER: 200}, 900),
        ("consumer", 50, {KEY: 100, OTHER: 200}, 200),
        ("consumer", None, {KEY: 100, OTHER: 200}, None),
        ("consumer", 900, {KEY: 100}, None),
        ("", None, {KEY: 100, OTHER: 200}, 200),
        ("", None, {KEY: 100}, None),
    ],
)
def test_a_group_is_as_old_as_its_last_member_and_its_newest_commit(
    protocol: str, since: int | None, times: dict[TopicPartition, int], expected: int | None
) -> None:
    group = GroupDescription(
        "g",
        type=CLASSIC,
        protocol_type=protocol,
        state="Empty",
        partitions=(offset(KEY), offset(OTHER)),
        committed_at=times,
        state_since_ms=since,
    )
    assert group.last_used_ms == expected


def test_a_group_about_which_nothing_is_known_has_no_age() -> None:
    assert GroupDescription("g", type=CLASSIC, protocol_type="", state="Empty").last_used_ms is None
    assert GroupDescription("g", type=CONSUMER, protocol_type="consumer", state="Empty").last_used_ms is None
