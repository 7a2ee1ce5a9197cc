"""The start offsets of share partitions: DescribeShareGroupOffsets, AlterShareGroupOffsets and DeleteShareGroupOffsets."""

from __future__ import annotations

from broker.cores.groups.records.share import NamedPartitions
from broker.cores.groups.refusals import Refused
from broker.cores.groups.share.group import ShareGroup
from broker.cores.groups.share.lookup import empty
from broker.cores.groups.share.partitions import delete, initialize
from broker.cores.groups.step import Step
from broker.cores.groups.topics import TopicCatalog
from broker.cores.share.state import NO_START_OFFSET, SharePartitionKey
from broker.protocol.errors import ErrorCode
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
from broker.protocol.wire_types import ZERO_UUID

# Kafka's messages of errors.
_UNKNOWN_TOPIC = "This server does not host this topic-partition."
_INVALID_GROUP_ID = "The group id is invalid."
_NO_GROUP = "The group id does not exist."
_NOTHING = "There is no offset information to delete."


# ---- DescribeShareGroupOffsets ---------------------------------------------------------------------------------------


def describe_offsets(step: Step, request: DescribeShareGroupOffsetsRequest) -> None:
    """As in Kafka, it shows -1 for what does not exist, be it the group."""
    groups = [
        DescribeShareGroupOffsetsResponse.Group(group_id=asked.group_id, topics=_offsets(step, asked))
        for asked in request.groups
    ]
    step.reply(DescribeShareGroupOffsetsResponse(groups=groups))


def _offsets(
    step: Step, asked: DescribeShareGroupOffsetsRequest.Group
) -> list[DescribeShareGroupOffsetsResponse.Topic]:
    catalog = step.coordinator.topics
    if asked.topics is None:
        group = step.groups.get(asked.group_id)
        initialized = group.partitions.initialized if isinstance(group, ShareGroup) else {}
        return [
            _topic(step, asked.group_id, name, topic_id, [*row.partitions])
            for topic_id, row in initialized.items()
            if (name := catalog.topic_name(topic_id)) is not None
        ]
    known = [topic for topic in asked.topics if catalog.topic_id(topic.topic_name) is not None]
    unknown = [topic for topic in asked.topics if catalog.topic_id(topic.topic_name) is None]
    return [
        _topic(step, asked.group_id, topic.topic_name, catalog.topic_id(topic.topic_name), topic.partitions)
        for topic in (*unknown, *known)
    ]


def _topic(
    step: Step, group_id: str, name: str, topic_id: bytes | None, partitions: list[int]
) -> DescribeShareGroupOffsetsResponse.Topic:
    rows = []
    for number in partitions:
        start_offset, leader_epoch = NO_START_OFFSET, 0
        if topic_id is not None:
            key = SharePartitionKey(group_id, topic_id, number)
            start_offset, leader_epoch, _ = step.coordinator.share_state().summary(key)
        rows.append(
            DescribeShareGroupOffsetsResponse.Partition(
                partition_index=number, start_offset=start_offset, leader_epoch=leader_epoch
            )
        )
    return DescribeShareGroupOffsetsResponse.Topic(topic_name=name, topic_id=topic_id or ZERO_UUID, partitions=rows)


# ---- AlterShareGroupOffsets ------------------------------------------------------------------------------------------


def alter_offsets(step: Step, request: AlterShareGroupOffsetsRequest) -> None:
    """Kafka 4.1.0 means to do this, but answers without it: it loses the topics on the way to its coordinator.

    The group counts only if one of the topics exists.
    """
    catalog = step.coordinator.topics
    try:
        if not request.group_id:
            raise Refused(ErrorCode.INVALID_GROUP_ID, _INVALID_GROUP_ID)
        if any(catalog.topic_id(topic.topic_name) is not None for topic in request.topics):
            _alter(step, empty(step, request.group_id), request)
        responses = [_altered(topic, catalog) for topic in request.topics]
        step.reply(AlterShareGroupOffsetsResponse(responses=responses))
    except Refused as refused:
        message = _NO_GROUP if refused.code == ErrorCode.GROUP_ID_NOT_FOUND else str(refused)
        step.reply(AlterShareGroupOffsetsResponse(error_code=refused.code, error_message=message))


def _alter(step: Step, group: ShareGroup, request: AlterShareGroupOffsetsRequest) -> None:
    """Raises Refused if the share coordinator refuses."""
    catalog = step.coordinator.topics
    starts: dict[bytes, dict[int, int]] = {}
    for topic in request.topics:
        topic_id = catalog.topic_id(topic.topic_name)
        for row in topic.partitions:
            if topic_id is not None and not _refusal(topic, row, catalog)[0]:
                starts.setdefault(topic_id, {})[row.partition_index] = row.start_offset
    error = initialize(step, group, starts) if starts else ErrorCode.NONE
    if error:
        raise Refused(error, error.meaning)


def _altered(topic: AlterShareGroupOffsetsRequest.Topic, catalog: TopicCatalog) -> AlterShareGroupOffsetsResponse.Topic:
    return AlterShareGroupOffsetsResponse.Topic(
        topic_name=topic.topic_name,
        topic_id=catalog.topic_id(topic.topic_name) or ZERO_UUID,
        partitions=[
            AlterShareGroupOffsetsResponse.Partition(
                partition_index=row.partition_index, error_code=refused[0], error_message=refused[1]
            )
            for row in topic.partitions
            for refused in (_refusal(topic, row, catalog),)
        ],
    )


def _refusal(
    topic: AlterShareGroupOffsetsRequest.Topic, row: AlterShareGroupOffsetsRequest.Partition, catalog: TopicCatalog
) -> tuple[ErrorCode, str | None]:
    if not 0 <= row.partition_index < (catalog.partition_count(topic.topic_name) or 0):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, _UNKNOWN_TOPIC
    if row.start_offset < NO_START_OFFSET:
        return ErrorCode.INVALID_REQUEST, f"{row.start_offset} is not an offset."
    return ErrorCode.NONE, None


# ---- DeleteShareGroupOffsets -----------------------------------------------------------------------------------------


def delete_offsets(step: Step, request: DeleteShareGroupOffsetsRequest) -> None:
    try:
        if not request.group_id:
            raise Refused(ErrorCode.INVALID_GROUP_ID, _INVALID_GROUP_ID)
        responses = _delete(step, empty(step, request.group_id), request) if request.topics else []
        step.reply(DeleteShareGroupOffsetsResponse(responses=responses))
    except Refused as refused:
        step.reply(DeleteShareGroupOffsetsResponse(error_code=refused.code, error_message=str(refused)))


def _delete(
    step: Step, group: ShareGroup, request: DeleteShareGroupOffsetsRequest
) -> list[DeleteShareGroupOffsetsResponse.Topic]:
    """Topics without offsets come last, as in Kafka, which has no answer at all for a group that never had state."""
    if not group.has_partitions:
        return []
    catalog, found = step.coordinator.topics, group.partitions
    deleted: dict[bytes, NamedPartitions] = {}
    failed = []
    for topic in request.topics:
        name = topic.topic_name
        topic_id, count = catalog.topic_id(name), catalog.partition_count(name) or 0
        if topic_id is None:
            failed.append(_failed(name, _UNKNOWN_TOPIC))
        elif topic_id in found.initialized:
            deleted[topic_id] = found.initialized[topic_id]
        elif topic_id in found.deleting:
            deleted[topic_id] = NamedPartitions(name, tuple(range(count)))
        else:
            failed.append(_failed(name, _NOTHING))
    delete(step, group, deleted)
    done = [
        DeleteShareGroupOffsetsResponse.Topic(topic_name=named.topic, topic_id=topic_id)
        for topic_id, named in deleted.items()
    ]
    return [*done, *failed]


def _failed(topic: str, message: str) -> DeleteShareGroupOffsetsResponse.Topic:
    return DeleteShareGroupOffsetsResponse.Topic(
        topic_name=topic,
        topic_id=ZERO_UUID,
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        error_message=message,
    )
