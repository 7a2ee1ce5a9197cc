"""What a replay has written, as consumers with isolation.level=read_committed see it."""

from __future__ import annotations

from collections.abc import Sequence

import kgctl
from kgctl.model.topic_partition import TopicPartition
from tests.kgctl.pipelines.archive.making import Row

Content = tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...], int]


def records(bootstrap: str, topic: str, partitions: int) -> dict[int, list[kgctl.ConsumerRecord]]:
    """All committed records of each partition. Waits for the markers of transactions, which follow the answer to a commit."""
    found: dict[int, list[kgctl.ConsumerRecord]] = {number: [] for number in range(partitions)}
    keys = [TopicPartition(topic, number) for number in found]
    with kgctl.Consumer(bootstrap_servers=bootstrap) as consumer:
        ends = consumer.end_offsets(keys)
    with kgctl.Consumer(bootstrap_servers=bootstrap, isolation_level="read_committed") as consumer:
        consumer.assign(keys)
        consumer.seek_to_beginning(keys)
        while any(consumer.position(key) < ends[key] for key in keys):
            for record in consumer.poll(0.2):
                found[record.partition].append(record)
    return found


def contents(bootstrap: str, topic: str, partitions: int) -> dict[int, list[Content]]:
    """What must be equal byte by byte."""
    found = records(bootstrap, topic, partitions)
    return {
        number: [(one.key, one.value, one.headers, one.timestamp_ms) for one in some] for number, some in found.items()
    }


def of_rows(rows: Sequence[Row]) -> list[Content]:
    return [(row.key, row.value, row.headers, row.timestamp_ms) for row in rows]
