"""Which records are looked up for the lag in time."""

from __future__ import annotations

import pytest

from kgctl.client.admin.lag_facts import unread_positions
from kgctl.model.topic_partition import TopicPartition
from tests.kgctl.watch.snapshots import group, partition


@pytest.mark.parametrize(
    ("commit", "end", "start", "found"),
    [
        (10, 30, 0, [("orders", 0, 10)]),
        # Retention has deleted what the group would read next.
        (10, 30, 25, [("orders", 0, 25)]),
        (10, 30, 30, []),
        (30, 30, 0, []),
        (None, 30, 0, []),
    ],
)
def test_the_oldest_unread_record_is_in_the_log(
    commit: int | None, end: int, start: int, found: list[tuple[str, int, int]]
) -> None:
    described = group(partitions=[partition(0, commit, end)])
    assert unread_positions([described], {TopicPartition("orders", 0): start}) == (found, 0)
