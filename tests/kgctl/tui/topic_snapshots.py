"""Prepared answers about topics: ones that groups read, ones with trouble, internal ones, hostile names."""

from __future__ import annotations

from kgctl.model.failure import RowError
from kgctl.model.lag import Retention
from kgctl.model.topic_partition import TopicPartition
from kgctl.model.topics import TopicPartitionRow, TopicRow
from kgctl.model.watched_topics import TopicsSnapshot, TopicStorage
from tests.kgctl.tui.snapshots import NOW_MS, NOW_S

DAY_MS = 86_400_000
HOSTILE = "zone\x1b[31m[red]\u6ce8\u6587\u202e"


def partitions(topic: str, ends: tuple[int, ...], start: int = 0, replicas: int = 1) -> list[TopicPartitionRow]:
    brokers = tuple(range(1, replicas + 1))
    return [
        TopicPartitionRow(topic, number, 1 + number % replicas, 0, brokers, brokers, start, end, end - start)
        for number, end in enumerate(ends)
    ]


def topics(after_s: float = 0.0) -> TopicsSnapshot:
    """A snapshot `after_s` seconds after NOW_S; 12 records/s arrive in each partition of orders."""
    more = int(12 * after_s)
    offline, lacking = partitions("payments", (90_000, 70_000), replicas=3)
    rows = [
        *partitions("orders", (1_000_000 + more, 880_000 + more, 12_345_678 + more), 500),
        TopicPartitionRow("payments", 0, None, replicas=offline.replicas, isr=(2,), error=RowError("X", "no leader")),
        TopicPartitionRow("payments", 1, 2, 4, lacking.replicas, (2, 3), 0, 70_000, 70_000),
        *partitions("clicks", (0,)),
        *partitions(HOSTILE, (7,)),
        *partitions("__consumer_offsets", (800, 900)),
    ]
    return TopicsSnapshot(
        NOW_S + after_s,
        int(NOW_MS + after_s * 1000),
        (
            TopicRow("__consumer_offsets", 2, 1, True),
            TopicRow("clicks", 1, 1, False),
            TopicRow("orders", 3, 1, False),
            TopicRow("payments", 2, 3, False),
            TopicRow("secret", 0, 0, False, RowError("TOPIC_AUTHORIZATION_FAILED", "topic 'secret': not authorized")),
            TopicRow(HOSTILE, 1, 1, False),
        ),
        tuple(rows),
    )


def storage() -> TopicStorage:
    keys = {number: TopicPartition("orders", number) for number in range(3)}
    return TopicStorage(
        NOW_MS,
        {keys[0]: 123_000_000, keys[1]: 98_000_000, keys[2]: 4_200_000_000, TopicPartition("payments", 1): 4_096},
        {keys[0]: NOW_MS - 6 * DAY_MS, keys[1]: NOW_MS - DAY_MS, TopicPartition("payments", 1): NOW_MS - 90_000},
        {"orders": Retention(7 * DAY_MS), "payments": Retention(None, 1_000_000_000), "clicks": Retention()},
    )
