"""Answers of brokers about groups and offsets, built from plain values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from broker.protocol.consumer_protocol import ConsumerProtocolAssignment, encode_blob
from broker.protocol.messages.describe_groups import DescribeGroupsResponse
from broker.protocol.messages.list_groups import ListGroupsResponse
from broker.protocol.messages.list_offsets import ListOffsetsResponse
from broker.protocol.messages.offset_fetch import OffsetFetchResponse
from kgctl.client.net.steps import Call
from kgctl.model.topic_partition import TopicPartition

UNKNOWN_PARTITION = 3


def ends(
    offsets: dict[TopicPartition, int], otherwise: int = UNKNOWN_PARTITION
) -> Callable[[Call], ListOffsetsResponse]:
    """The same offsets for every timestamp; `otherwise` is the error of all other partitions."""

    def answer(call: Call) -> ListOffsetsResponse:
        request: Any = call.request
        return ListOffsetsResponse(
            topics=[
                ListOffsetsResponse.Topic(
                    name=topic.name,
                    partitions=[
                        ListOffsetsResponse.Partition(
                            partition_index=row.partition_index,
                            offset=offsets.get((topic.name, row.partition_index), -1),
                            error_code=0 if (topic.name, row.partition_index) in offsets else otherwise,
                        )
                        for row in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    return answer


def by_timestamp(offsets: dict[int, dict[TopicPartition, int]]) -> Callable[[Call], ListOffsetsResponse]:
    """Offsets by the requested timestamp; a partition without one has offset -1."""

    def answer(call: Call) -> ListOffsetsResponse:
        request: Any = call.request
        return ListOffsetsResponse(
            topics=[
                ListOffsetsResponse.Topic(
                    name=topic.name,
                    partitions=[
                        ListOffsetsResponse.Partition(
                            partition_index=row.partition_index,
                            offset=offsets[row.timestamp].get((topic.name, row.partition_index), -1),
                        )
                        for row in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    return answer


def member(
    member_id: str, owned: dict[str, list[int]] | bytes = b"", instance: str | None = None
) -> DescribeGroupsResponse.Member:
    blob = owned if isinstance(owned, bytes) else assignment(owned)
    return DescribeGroupsResponse.Member(
        member_id=member_id,
        group_instance_id=instance,
        client_id="app",
        client_host="/10.0.0.1",
        member_metadata=b"",
        member_assignment=blob,
    )


def assignment(owned: dict[str, list[int]]) -> bytes:
    rows = [
        ConsumerProtocolAssignment.TopicPartition(topic=topic, partitions=numbers) for topic, numbers in owned.items()
    ]
    return encode_blob(ConsumerProtocolAssignment(assigned_partitions=rows))


def group(
    group_id: str, state: str = "Stable", *members: DescribeGroupsResponse.Member, **more: Any
) -> DescribeGroupsResponse.Group:
    more = {"protocol_type": "consumer", "protocol_data": "range", **more}
    return DescribeGroupsResponse.Group(group_id=group_id, group_state=state, members=list(members), **more)


def describes(*groups: DescribeGroupsResponse.Group) -> Callable[[Call], DescribeGroupsResponse]:
    """Other groups do not exist: Dead, or error 69 from version 6."""
    known = {row.group_id: row for row in groups}

    def answer(call: Call) -> DescribeGroupsResponse:
        request: Any = call.request
        absent = {"error_code": 69} if call.version >= 6 else {}
        return DescribeGroupsResponse(
            groups=[
                known.get(name) or group(name, "Dead", protocol_type="", protocol_data="", **absent)
                for name in request.groups
            ]
        )

    return answer


def commits(of: dict[str, dict[TopicPartition, int]]) -> Callable[[Call], OffsetFetchResponse]:
    """Committed offsets per group; a negative number is an error code of the partition."""

    def topics(name: str) -> list[OffsetFetchResponse.Topic]:
        return [
            OffsetFetchResponse.Topic(
                name=topic,
                partitions=[
                    OffsetFetchResponse.Partition(
                        partition_index=number,
                        committed_offset=max(offset, -1),
                        metadata="",
                        error_code=max(-offset - 1, 0),
                    )
                ],
            )
            for (topic, number), offset in of.get(name, {}).items()
        ]

    def answer(call: Call) -> OffsetFetchResponse:
        request: Any = call.request
        if call.version < 8:
            return OffsetFetchResponse(topics=topics(request.group_id))
        return OffsetFetchResponse(
            groups=[
                OffsetFetchResponse.Group(group_id=row.group_id, topics=topics(row.group_id)) for row in request.groups
            ]
        )

    return answer


def lists(**types: str) -> Callable[[Call], ListGroupsResponse]:
    """Groups by name, each with its type."""
    rows = [
        ListGroupsResponse.Group(group_id=name, protocol_type=kind, group_state="Stable", group_type=kind)
        for name, kind in types.items()
    ]
    return lambda call: ListGroupsResponse(groups=rows)
