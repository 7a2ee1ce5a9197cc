"""The start offsets of share groups (KIP-932): before them, all records of a partition are done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from broker.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from broker.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
from broker.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
from kgctl.client.net.authorization import Asked
from kgctl.client.net.cluster import Ask, Batch, Cluster, Node, chunks
from kgctl.client.net.errors import BrokerError, KgctlError, LeftOut, Precondition, Unsupported
from kgctl.client.net.steps import Steps
from kgctl.model.groups import Committed
from kgctl.model.topic_partition import TopicPartition

GROUPS_PER_REQUEST = 100


Altered: TypeAlias = "dict[TopicPartition, KgctlError | None]"


class Ignored(Unsupported):
    """Kafka 4.1.0 answers AlterShareGroupOffsets without the partitions, and changes nothing."""

    def __init__(self, group: str) -> None:
        super().__init__(
            f"the cluster ignored the start offsets of share group {group!r}, as Kafka 4.1.0 does; after `kgctl groups"
            " delete-offsets` the group begins where its config share.auto.offset.reset says"
        )


def share_offsets(
    cluster: Cluster, groups: Iterable[str]
) -> Steps[dict[str, dict[TopicPartition, Committed] | KgctlError]]:
    """The start offset of each partition that the group may read; None before its first fetch, as `share.auto.offset.reset` says."""

    def make(node: Node, names: list[str]) -> list[Batch[str]]:
        return [
            Batch(Ask(node.endpoint, _describing(some), DescribeShareGroupOffsetsResponse), some, _read)
            for some in chunks(names, GROUPS_PER_REQUEST)
        ]

    return (yield from cluster.at_coordinators(groups, make))


def alter_share_offsets(
    cluster: Cluster, offsets: Mapping[str, Mapping[TopicPartition, int | Committed]]
) -> Steps[dict[str, dict[TopicPartition, KgctlError | None]]]:
    """Set the start offsets of each group, which must have no members. None is success."""
    requests = {group: _altering(group, wanted) for group, wanted in offsets.items()}

    def make(node: Node, names: list[str]) -> list[Batch[str]]:
        return [
            Batch(Ask(node.endpoint, requests[name], AlterShareGroupOffsetsResponse), [name], _reader(name))
            for name in names
        ]

    found = yield from cluster.at_coordinators(offsets, make)
    return {
        group: dict.fromkeys(wanted, result)
        if isinstance(result := found[group], KgctlError)
        else {key: result[key] if key in result else Ignored(group) for key in wanted}
        for group, wanted in offsets.items()
    }


def delete_share_offsets(
    cluster: Cluster, partitions: Mapping[str, Sequence[TopicPartition]]
) -> Steps[dict[str, dict[TopicPartition, KgctlError | None]]]:
    """Delete start offsets of groups without members, topic by topic: a part of a topic is refused. None is success."""
    present = yield from share_offsets(cluster, partitions)
    done: dict[str, dict[TopicPartition, KgctlError | None]] = {}
    requests = {}
    for group, keys in partitions.items():
        known = present[group]
        done[group] = {key: part_of_topic(group, key, known, keys) for key in keys if not isinstance(known, KgctlError)}
        topics = sorted({key.topic for key in keys if not done[group].get(key)})
        if topics:
            rows = [DeleteShareGroupOffsetsRequest.Topic(topic_name=topic) for topic in topics]
            requests[group] = DeleteShareGroupOffsetsRequest(group_id=group, topics=rows)

    def make(node: Node, names: list[str]) -> list[Batch[str]]:
        return [
            Batch(Ask(node.endpoint, requests[name], DeleteShareGroupOffsetsResponse), [name], partial(_deleted, name))
            for name in names
        ]

    found = yield from cluster.at_coordinators(requests, make)
    for group, keys in partitions.items():
        result = found.get(group, {})
        for key in keys:
            if not done[group].get(key):
                # Kafka has no answer about a group that never had start offsets.
                left_out = LeftOut(f"group {group!r}, {key}")
                done[group][key] = result if isinstance(result, KgctlError) else result.get(key.topic, left_out)
    return done


def part_of_topic(
    group: str,
    key: TopicPartition,
    present: Iterable[TopicPartition],
    wanted: Iterable[TopicPartition],
) -> Precondition | None:
    """Why a start offset cannot be deleted: others of its topic are to stay."""
    others = {one for one in present if one.topic == key.topic} - set(wanted)
    if not others:
        return None
    return Precondition(
        f"Start offsets of share group '{group}' can only be deleted for all partitions of topic '{key.topic}' together."
    )


def _deleted(
    group: str, answer: DeleteShareGroupOffsetsResponse
) -> dict[str, dict[str, KgctlError | None] | KgctlError]:
    kind = DeleteShareGroupOffsetsRequest
    if answer.error_code:
        asked = Asked(kind, group)
        return {group: BrokerError(answer.error_code, f"group {group!r}", answer.error_message, asked=asked)}
    return {
        group: {
            row.topic_name: BrokerError(
                row.error_code,
                f"group {group!r}, topic {row.topic_name!r}",
                row.error_message,
                asked=Asked(kind, group, row.topic_name),
            )
            if row.error_code
            else None
            for row in answer.responses
        }
    }


def _describing(groups: Sequence[str]) -> DescribeShareGroupOffsetsRequest:
    rows = [DescribeShareGroupOffsetsRequest.Group(group_id=group, topics=None) for group in groups]
    return DescribeShareGroupOffsetsRequest(groups=rows)


def _read(answer: DescribeShareGroupOffsetsResponse) -> dict[str, dict[TopicPartition, Committed] | KgctlError]:
    return {row.group_id: _offsets(row) for row in answer.groups}


def _offsets(group: DescribeShareGroupOffsetsResponse.Group) -> dict[TopicPartition, Committed] | KgctlError:
    kind, name = DescribeShareGroupOffsetsRequest, group.group_id
    if group.error_code:
        return BrokerError(group.error_code, f"group {name!r}", group.error_message, asked=Asked(kind, name))
    found = {}
    for topic in group.topics:
        for row in topic.partitions:
            key = TopicPartition(topic.topic_name, row.partition_index)
            if row.error_code:
                error = BrokerError(
                    row.error_code, f"group {name!r}, {key}", row.error_message, asked=Asked(kind, name, key.topic)
                )
                found[key] = Committed(None, error=error.as_row())
            else:
                found[key] = Committed(row.start_offset if row.start_offset >= 0 else None)
    return found


def _altering(group: str, offsets: Mapping[TopicPartition, int | Committed]) -> AlterShareGroupOffsetsRequest:
    topics: dict[str, list[AlterShareGroupOffsetsRequest.Partition]] = {}
    for key in sorted(offsets):
        value = offsets[key]
        start = value if isinstance(value, int) else value.offset
        assert start is not None
        row = AlterShareGroupOffsetsRequest.Partition(partition_index=key.partition, start_offset=start)
        topics.setdefault(key.topic, []).append(row)
    return AlterShareGroupOffsetsRequest(
        group_id=group,
        topics=[
            AlterShareGroupOffsetsRequest.Topic(topic_name=topic, partitions=rows) for topic, rows in topics.items()
        ],
    )


def _reader(group: str) -> Callable[[AlterShareGroupOffsetsResponse], dict[str, Altered | KgctlError]]:
    kind = AlterShareGroupOffsetsRequest

    def read(answer: AlterShareGroupOffsetsResponse) -> dict[str, Altered | KgctlError]:
        if answer.error_code:
            return {
                group: BrokerError(
                    answer.error_code, f"group {group!r}", answer.error_message, asked=Asked(kind, group)
                )
            }
        return {
            group: {
                (key := TopicPartition(topic.topic_name, row.partition_index)): BrokerError(
                    row.error_code, f"group {group!r}, {key}", row.error_message, asked=Asked(kind, group, key.topic)
                )
                if row.error_code
                else None
                for topic in answer.responses
                for row in topic.partitions
            }
        }

    return read
