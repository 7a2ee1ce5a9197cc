"""Where the records of the last moments begin in partitions that a group has not read to the end."""

from __future__ import annotations

from typing import Any

import pytest

from broker.protocol.messages.list_offsets import ListOffsetsResponse
from kgctl.client.admin.recent_offsets import with_recent
from kgctl.model.groups import GroupDescription
from kgctl.model.topic_partition import TopicPartition
from kgctl.watch.standing import standing
from tests.harness.feeding import METADATA, Feeder, cluster, metadata
from tests.kgctl.watch.snapshots import group, partition

NOW, LIST_OFFSETS = 1_000_000_000, 2
ORDERS = TopicPartition("orders", 0)


def asked(offset: int, at_ms: int) -> GroupDescription:
    """A group with unread records from 100 to 120; a broker says that this is the first record of the last moments."""

    def list_offsets(call: Any) -> ListOffsetsResponse:
        row = ListOffsetsResponse.Partition(partition_index=0, offset=offset, timestamp=at_ms)
        return ListOffsetsResponse(topics=[ListOffsetsResponse.Topic(name="orders", partitions=[row])])

    fed = Feeder({METADATA: metadata({"orders": {0: 1}}), LIST_OFFSETS: list_offsets})
    described = group(partitions=[partition(0, 100, 120)], clock_ms=NOW, committed_at={ORDERS: NOW - 91_000})
    (found,), left_out = fed.run(with_recent(cluster(), [described], NOW - 90_000, NOW))
    assert left_out == 0
    return found


@pytest.mark.parametrize(
    ("offset", "at_ms", "start", "verdict"),
    [
        (110, NOW - 80_000, 110, "STALLED"),
        (100, NOW - 80_000, 100, "OK"),
        # All unread records are older.
        (-1, -1, 120, "STALLED"),
        # The clock of a producer is ahead.
        (110, NOW + 60_000, None, None),
    ],
)
def test_unread_records_are_old_or_recent(offset: int, at_ms: int, start: int | None, verdict: str | None) -> None:
    found = asked(offset, at_ms)
    assert found.recent_from == ({} if start is None else {ORDERS: start})
    health = standing(found, NOW).health
    assert (None if health is None else str(health)) == verdict
