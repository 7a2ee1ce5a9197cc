"""What the partitions of groups show beside offsets: log starts, retention, sizes, and when unread records were written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from broker.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from broker.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from kgctl.client.admin.offsets import EARLIEST, MAX_TIMESTAMP, list_offsets
from kgctl.client.admin.record_times import record_times
from kgctl.client.net.cluster import Ask, Batch, Cluster, Node, chunks
from kgctl.client.net.errors import BrokerError, KgctlError
from kgctl.client.net.steps import Steps
from kgctl.model.groups import GroupDescription
from kgctl.model.lag import Position, Retention
from kgctl.model.topic_partition import TopicPartition

TOPICS_PER_REQUEST = 1000
# Positions whose record is looked up, those with most lag first: each may cost a batch of 64 KiB.
MOST_POSITIONS = 2000
POLICY, AGE, SIZE, TIMESTAMPS = "cleanup.policy", "retention.ms", "retention.bytes", "message.timestamp.type"
_TOPIC = 2


def partitions_of(groups: Iterable[GroupDescription]) -> list[TopicPartition]:
    """The partitions that these groups read, each once."""
    return sorted(
        {
            TopicPartition(row.topic, row.partition)
            for group in groups
            for row in group.partitions
            if row.topic is not None and row.partition is not None
        }
    )


def log_starts(cluster: Cluster, partitions: Sequence[TopicPartition]) -> Steps[dict[TopicPartition, int]]:
    """The first offset of each log; partitions with an error are absent."""
    found = yield from list_offsets(cluster, dict.fromkeys(partitions, EARLIEST))
    return {key: at.offset for key, at in found.items() if not isinstance(at, KgctlError)}


def newest_times(cluster: Cluster, partitions: Sequence[TopicPartition]) -> Steps[dict[TopicPartition, int]]:
    """The latest timestamp in each log (Kafka 3.0); empty logs and partitions with an error are absent."""
    found = yield from list_offsets(cluster, dict.fromkeys(partitions, MAX_TIMESTAMP))
    return {key: at.timestamp for key, at in found.items() if not isinstance(at, KgctlError) and at.timestamp >= 0}


def unread_positions(
    groups: Iterable[GroupDescription], starts: dict[TopicPartition, int]
) -> tuple[list[Position], int]:
    """Where the oldest unread record of each partition with lag is, most lag first; and how many exceed MOST_POSITIONS."""
    found: dict[Position, int] = {}
    for group in groups:
        for row in group.partitions:
            if row.topic is None or row.partition is None or row.current_offset is None or (row.lag or 0) <= 0:
                continue
            offset = max(row.current_offset, starts.get(TopicPartition(row.topic, row.partition), 0))
            if offset < (row.log_end_offset or 0):
                found[row.topic, row.partition, offset] = row.lag or 0
    ordered = sorted(found, key=lambda position: (-found[position], position))
    return ordered[:MOST_POSITIONS], max(0, len(ordered) - MOST_POSITIONS)


def unread_times(cluster: Cluster, positions: Sequence[Position]) -> Steps[dict[Position, int]]:
    """The timestamp of the first record at or after each position; absent where there is none, or none with a timestamp."""
    found = yield from record_times(cluster, positions)
    return {position: time for position, time in found.items() if time is not None and time >= 0}


def retention(cluster: Cluster, topics: Sequence[str]) -> Steps[dict[str, Retention]]:
    """When each topic deletes records. Raises the error if no topic could be read."""
    found: dict[str, Retention] = {}
    failed: KgctlError | None = None
    for some in chunks(sorted(set(topics)), TOPICS_PER_REQUEST):
        resource = DescribeConfigsRequest.Resource
        resources = [
            resource(resource_type=_TOPIC, resource_name=topic, configuration_keys=[POLICY, AGE, SIZE, TIMESTAMPS])
            for topic in some
        ]
        answer = yield from cluster.ask_any(DescribeConfigsRequest(resources=resources), DescribeConfigsResponse)
        for row in answer.results:
            if row.error_code:
                failed = BrokerError(row.error_code, f"the settings of topic {row.resource_name!r}", row.error_message)
                continue
            found[row.resource_name] = _retention({one.name: one.value for one in row.configs})
    if failed is not None and not found:
        raise failed
    return found


def _retention(configs: dict[str, str | None]) -> Retention:
    is_deleted = "delete" in (configs.get(POLICY) or "delete")
    return Retention(
        _limit(configs.get(AGE)) if is_deleted else None,
        _limit(configs.get(SIZE)) if is_deleted else None,
        is_append_time=configs.get(TIMESTAMPS) == "LogAppendTime",
    )


def _limit(text: str | None) -> int | None:
    number = int(text) if text else -1
    return None if number < 0 else number


def log_bytes(cluster: Cluster, partitions: Iterable[TopicPartition]) -> Steps[dict[TopicPartition, int]]:
    """The size of each log at its leader; absent where the broker does not report it. Raises the error if all failed."""

    def make(node: Node, wanted: list[TopicPartition]) -> list[Batch[TopicPartition]]:
        topics: dict[str, list[int]] = {}
        for topic, number in sorted(wanted):
            topics.setdefault(topic, []).append(number)
        rows = [DescribeLogDirsRequest.Topic(topic=topic, partitions=numbers) for topic, numbers in topics.items()]
        ask = Ask(node.endpoint, DescribeLogDirsRequest(topics=rows), DescribeLogDirsResponse)
        # A broker leaves out what the principal may not describe; asking again would not help.
        return [Batch(ask, wanted, lambda answer: dict.fromkeys(wanted, -1) | _sizes(answer))]

    found = yield from cluster.at_leaders(partitions, make)
    sizes = {key: size for key, size in found.items() if not isinstance(size, KgctlError) and size >= 0}
    failures = [size for size in found.values() if isinstance(size, KgctlError)]
    if failures and not sizes:
        raise failures[0]
    return sizes


def _sizes(answer: DescribeLogDirsResponse) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic.name, row.partition_index): row.partition_size
        for directory in answer.results
        for topic in directory.topics
        for row in topic.partitions
        if not row.is_future_key
    }
