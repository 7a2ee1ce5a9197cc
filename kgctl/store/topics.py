"""Tables of topics, partitions, segments, configs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from broker.inspection import StoredPartition
from kgctl.model.store import StoreConfig, StorePartitionRow, StoreSegmentRow, StoreTopic
from kgctl.store.offline import Offline
from kgctl.store.times import iso

SECRET = re.compile(r"password|jaas|secret|passphrase|keystore\.key$")
HIDDEN = "(hidden)"
ENTITIES = {"broker_configs": "broker", "group_configs": "group", "client_metrics_configs": "client-metrics"}


def topics(offline: Offline) -> Iterator[StoreTopic]:
    rows: dict[str, list[StorePartitionRow]] = {}
    for row in partitions(offline):
        rows.setdefault(row.topic, []).append(row)
    for topic in offline.directory.topics:
        some = rows.get(topic.name, [])
        yield StoreTopic(
            topic.name,
            topic.topic_id.hex(),
            topic.partition_count,
            topic.internal,
            sum(row.log_end_offset - row.log_start_offset for row in some),
            sum(row.segments for row in some),
            sum(row.size_bytes for row in some),
            min((row.first_time for row in some if row.first_time), default=None),
            max((row.last_time for row in some if row.last_time), default=None),
        )


def partitions(offline: Offline) -> Iterator[StorePartitionRow]:
    """All partitions, except those of internal topics that hold nothing."""
    written = {(one.topic, one.partition): one for one in offline.partitions}
    for topic in offline.directory.topics:
        for index in range(topic.partition_count):
            one, rows = written.get((topic.name, index)), offline.row_partitions.get((topic.name, index))
            if one is not None:
                first, last = _times(one)
                start, end, count, size = one.log_start_offset, one.log_end_offset, len(one.segments), one.size_bytes
            elif rows is not None:
                first, last = rows.first_timestamp, rows.last_timestamp
                start, end, count, size = rows.log_start_offset, rows.log_end_offset, 0, rows.size_bytes
            elif topic.internal:
                continue
            else:
                first, last = None, None
                start, end, count, size = 0, 0, 0, 0
            yield StorePartitionRow(topic.name, index, start, end, count, size, iso(first), iso(last))


def _times(partition: StoredPartition) -> tuple[int | None, int | None]:
    known = [segment for segment in partition.segments if segment.max_timestamp >= 0]
    return (known[0].first_timestamp, max(segment.max_timestamp for segment in known)) if known else (None, None)


def segments(offline: Offline) -> Iterator[StoreSegmentRow]:
    for partition in offline.partitions:
        for one in partition.segments:
            yield StoreSegmentRow(
                partition.topic,
                partition.partition,
                one.base_offset,
                one.end_offset,
                one.size_bytes,
                iso(one.first_timestamp),
                iso(one.max_timestamp),
                not one.is_active,
                str(one.path.relative_to(offline.path)),
            )


def configs(offline: Offline) -> Iterator[StoreConfig]:
    import json

    for topic in offline.directory.topics:
        for name, value in topic.configs.items():
            yield StoreConfig("topic", topic.name, name, value)
    for name, value in offline.directory.broker_configs().items():
        yield StoreConfig("broker", "", name, _shown(name, value))
    for kind, entity in ENTITIES.items():
        for owner, text in offline.directory.security_records(kind).items():
            for name, value in json.loads(text).items():
                yield StoreConfig(entity, owner, name, _shown(name, str(value)))


def _shown(name: str, value: str) -> str:
    return HIDDEN if SECRET.search(name) else value
