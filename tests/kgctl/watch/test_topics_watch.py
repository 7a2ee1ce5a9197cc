"""Topics over snapshots: rates, and the groups that read them."""

from __future__ import annotations

from dataclasses import replace

from kgctl.model.groups import GroupDescription
from kgctl.model.lag import Retention
from kgctl.model.topic_partition import TopicPartition
from kgctl.model.topics import TopicPartitionRow, TopicRow
from kgctl.model.watched_topics import TopicsSnapshot, TopicStorage
from kgctl.watch.cluster import ClusterWatch
from kgctl.watch.topics import TopicsWatch
from tests.kgctl.watch.snapshots import group, partition, snapshot

HOUR_MS = 3_600_000
KEY = TopicPartition("orders", 0)


def topics(at_s: float, end: int, start: int = 0) -> TopicsSnapshot:
    rows = (TopicPartitionRow("orders", 0, 1, 0, (1,), (1,), start, end, end - start),)
    return TopicsSnapshot(at_s, int(at_s * 1000), (TopicRow("orders", 1, 1, False),), rows)


def at(name: str, commit: int) -> GroupDescription:
    return group(name=name, partitions=[replace(partition(0, commit, 1_100), group=name)])


def test_rates_cover_the_last_minute_and_start_again_with_a_new_topic_and_after_going_back() -> None:
    watch = TopicsWatch()
    watch.add(topics(0, 1_000))
    assert watch.rate_in([KEY]) is None
    for at_s in range(2, 200, 2):
        watch.add(topics(at_s, 1_000 + (10 if at_s <= 100 else 20) * at_s))
    assert watch.rate_in([KEY]) == 20.0
    watch.add(topics(200, 7))
    assert watch.rate_in([KEY]) is None
    watch.add(topics(210, 27))
    assert watch.rate_in([KEY]) == 2.0
    watch.add(topics(50, 20))
    assert watch.rate_in([KEY]) is None
    assert watch.rate_in([TopicPartition("other", 0)]) is None


def test_the_headroom_of_a_group_follows_from_where_it_is_between_the_oldest_record_and_now() -> None:
    watch = TopicsWatch()
    watch.add(topics(0, 1_100, 100))
    retention = {"orders": Retention(age_ms=5 * HOUR_MS)}
    watch.add_storage(TopicStorage(10 * HOUR_MS, oldest={KEY: 6 * HOUR_MS}, retention=retention))
    behind, lost, done = (at(name, commit) for name, commit in (("behind", 350), ("lost", 40), ("done", 1_100)))
    watch.add_groups(ClusterWatch().add(snapshot(0, behind, lost, done)))
    (row,) = watch.topics()
    assert set(row.readers) == {"behind", "lost", "done"}
    readers = {one.group: one for one in watch.readers("orders")}
    # A quarter of the log is read: three hours are left of it, and the next record is kept for two more.
    assert (readers["behind"].behind_ms, readers["behind"].headroom_ms) == (3 * HOUR_MS, 2 * HOUR_MS)
    assert (readers["lost"].lost, readers["lost"].headroom_ms) == (60, HOUR_MS)
    assert (readers["done"].lag, readers["done"].headroom_ms, readers["done"].lost) == (0, None, 0)
    (only,) = watch.partitions("orders")
    assert [(one.group, one.lag) for one in only.readers] == [("lost", 1_060), ("behind", 750), ("done", 0)]
