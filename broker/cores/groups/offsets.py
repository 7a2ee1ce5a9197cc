"""Committed offsets: OffsetCommit, OffsetFetch, OffsetDelete, and offsets that expire."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias, TypeVar

from broker.cores.groups.events import Cause, EventType
from broker.cores.groups.group import CONSUMER, Group, GroupState
from broker.cores.groups.records import GenerationFloor, GroupMetadataTombstone, OffsetCommitRecord, OffsetTombstone
from broker.cores.groups.step import Step
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from broker.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from broker.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

RequestTopic = TypeVar("RequestTopic", OffsetCommitRequest.Topic, OffsetDeleteRequest.Topic)
UnknownPartitions: TypeAlias = "dict[str, list[int]]"  # by topic

# The latest time that a record can hold.
LATEST_MS = 2**63 - 1
# Kafka limits the batch that a request makes to 1 MiB, which holds about as many commits.
MAX_COMMITTED_PARTITIONS = 10_000
_KEEPS_SESSION = (GroupState.STABLE, GroupState.PREPARING_REBALANCE)


def commit_offsets(step: Step, request: OffsetCommitRequest) -> None:
    """Kafka checks partitions before the group: a request that names only unknown ones does not reach the group."""
    existing, unknown = _split_by_existence(step, request.topics)
    topics = [] if unknown and not existing else _commit_topics(step, request, existing)
    _add_unknown(topics, unknown, OffsetCommitResponse)
    step.reply(OffsetCommitResponse(topics=topics))


def _commit_topics(
    step: Step, request: OffsetCommitRequest, topics: list[OffsetCommitRequest.Topic]
) -> list[OffsetCommitResponse.Topic]:
    group = step.groups.get(request.group_id)
    refused = _commit_refusal(step, group, request)
    if not refused and sum(len(topic.partitions) for topic in topics) > MAX_COMMITTED_PARTITIONS:
        refused = ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    if refused and group is not None:
        group.pending_event.commits_rejected += 1
    if not refused and group is not None and group.state in _KEEPS_SESSION:
        step.restart_session(group, group.members[request.member_id])
    return [
        OffsetCommitResponse.Topic(
            name=topic.name,
            partitions=[
                OffsetCommitResponse.Partition(
                    partition_index=partition.partition_index,
                    error_code=refused or _commit(step, request, topic.name, partition),
                )
                for partition in topic.partitions
            ],
        )
        for topic in topics
    ]


def _commit_refusal(step: Step, group: Group | None, request: OffsetCommitRequest) -> ErrorCode:
    generation, member_id = request.generation_id_or_member_epoch, request.member_id
    if group is None:
        if generation < 0:
            return ErrorCode.NONE
        return ErrorCode.GROUP_ID_NOT_FOUND if step.request.api_version >= 9 else ErrorCode.ILLEGAL_GENERATION
    if generation < 0 and group.state is GroupState.EMPTY:
        # A simple consumer, or an admin: no generation, and nobody whose offsets these could be.
        return ErrorCode.NONE
    if generation < 0 and not member_id and request.group_instance_id is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    error = group.fence(member_id, request.group_instance_id)
    if error:
        return error
    if generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if group.state is GroupState.COMPLETING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def _commit(
    step: Step, request: OffsetCommitRequest, topic: str, partition: OffsetCommitRequest.Partition
) -> ErrorCode:
    metadata = partition.committed_metadata or ""
    if _is_too_long(metadata, step.coordinator.settings.offset_metadata_max_bytes):
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    retention_ms = request.retention_time_ms
    step.persist(
        OffsetCommitRecord(
            request.group_id,
            topic,
            partition.partition_index,
            partition.committed_offset,
            partition.committed_leader_epoch,
            metadata,
            step.wall_ms,
            None if retention_ms == -1 else min(step.wall_ms + retention_ms, LATEST_MS),
        )
    )
    return ErrorCode.NONE


def _is_too_long(metadata: str, limit: int) -> bool:
    # Kafka counts UTF-16 units, of which a character has one or two.
    if len(metadata) * 2 <= limit:
        return False
    return len(metadata.encode("utf-16-le", "surrogatepass")) // 2 > limit


def fetch_offsets(step: Step, request: OffsetFetchRequest) -> None:
    if step.request.api_version < 8:
        return step.reply(OffsetFetchResponse(topics=_fetch(step.groups.get(request.group_id), request.topics)))
    return step.reply(
        OffsetFetchResponse(
            groups=[
                OffsetFetchResponse.Group(
                    group_id=asked.group_id, topics=_fetch(step.groups.get(asked.group_id), asked.topics)
                )
                for asked in request.groups
            ]
        )
    )


def _fetch(group: Group | None, asked: list[OffsetFetchRequest.Topic] | None) -> list[OffsetFetchResponse.Topic]:
    offsets = group.offsets if group is not None else {}
    if asked is None:
        return [_fetched(topic, offsets[topic], offsets[topic]) for topic in offsets]
    return [_fetched(topic.name, topic.partition_indexes, offsets.get(topic.name, {})) for topic in asked]


def _fetched(
    topic: str, partitions: Iterable[int], offsets: dict[int, OffsetCommitRecord]
) -> OffsetFetchResponse.Topic:
    return OffsetFetchResponse.Topic(
        name=topic, partitions=[_fetched_partition(partition, offsets.get(partition)) for partition in partitions]
    )


def _fetched_partition(partition: int, kept: OffsetCommitRecord | None) -> OffsetFetchResponse.Partition:
    if kept is None:
        return OffsetFetchResponse.Partition(partition_index=partition, committed_offset=-1, metadata="")
    return OffsetFetchResponse.Partition(
        partition_index=partition,
        committed_offset=kept.offset,
        committed_leader_epoch=kept.leader_epoch,
        metadata=kept.metadata,
    )


def delete_offsets(step: Step, request: OffsetDeleteRequest) -> None:
    """Kafka checks the group before partitions: an error of the group leaves the topics out of the response."""
    group = step.groups.get(request.group_id)
    refused = _delete_refusal(group, request)
    if refused or group is None:
        return step.reply(OffsetDeleteResponse(error_code=refused, topics=[]))
    existing, unknown = _split_by_existence(step, request.topics)
    topics = [_delete(step, group, topic) for topic in existing]
    _add_unknown(topics, unknown, OffsetDeleteResponse)
    return step.reply(OffsetDeleteResponse(topics=topics))


def _delete_refusal(group: Group | None, request: OffsetDeleteRequest) -> ErrorCode:
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND
    if group.state is not GroupState.EMPTY and group.protocol_type != CONSUMER:
        return ErrorCode.NON_EMPTY_GROUP
    return ErrorCode.NONE


def _delete(step: Step, group: Group, topic: OffsetDeleteRequest.Topic) -> OffsetDeleteResponse.Topic:
    error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if group.is_subscribed_to(topic.name) else ErrorCode.NONE
    if not error:
        for partition in topic.partitions:
            delete_offset(step, group, topic.name, partition.partition_index)
    return OffsetDeleteResponse.Topic(
        name=topic.name,
        partitions=[
            OffsetDeleteResponse.Partition(partition_index=partition.partition_index, error_code=error)
            for partition in topic.partitions
        ],
    )


def delete_offset(step: Step, group: Group, topic: str, partition: int) -> None:
    if partition in group.offsets.get(topic, ()):
        step.persist(OffsetTombstone(group.group_id, topic, partition, step.wall_ms))


def _split_by_existence(step: Step, topics: list[RequestTopic]) -> tuple[list[RequestTopic], UnknownPartitions]:
    """The part of a request whose partitions exist, and the partitions that do not."""
    existing: list[RequestTopic] = []
    unknown: UnknownPartitions = {}
    for topic in topics:
        count = step.coordinator.topics.partition_count(topic.name)
        indexes = range(count or 0)
        found = [p for p in topic.partitions if p.partition_index in indexes]
        if len(found) == len(topic.partitions) and count is not None:
            existing.append(topic)
            continue
        missing = [p.partition_index for p in topic.partitions if p.partition_index not in indexes]
        unknown.setdefault(topic.name, []).extend(missing)
        if found:
            existing.append(type(topic)(name=topic.name, partitions=found))
    return existing, unknown


def _add_unknown(
    topics: list[Any], unknown: UnknownPartitions, response: type[OffsetCommitResponse | OffsetDeleteResponse]
) -> None:
    """Answer for the unknown partitions, in the entry of their topic if the response has one."""
    by_name: dict[str, Any] = {}
    for answered in topics:
        by_name.setdefault(answered.name, answered)
    for name, indexes in unknown.items():
        topic: Any = by_name.get(name)
        if topic is None:
            topic = response.Topic(name=name, partitions=[])
            topics.append(topic)
        topic.partitions.extend(
            response.Partition(partition_index=index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            for index in indexes
        )


def expire_offsets(step: Step, group: Group) -> None:
    """Drop offsets that have outlived their retention, and the group when it is Empty and has none left."""
    if group.offsets and not _expire(step, group):
        return
    # Kafka deletes even a group that has just given out an id, and refuses that id a moment later; ours waits for it.
    if group.state is GroupState.EMPTY and not group.pending_joins:
        delete_group(step, group, "no offsets left")


def _expire(step: Step, group: Group) -> bool:
    """Whether all offsets of the group have gone."""
    is_simple = group.protocol_type is None
    if group.state is GroupState.EMPTY or is_simple:
        since_empty = None if is_simple or group.state_timestamp_ms < 0 else group.state_timestamp_ms
    elif group.state is GroupState.STABLE and group.known_subscriptions() is not None:
        since_empty = None
    else:
        return False
    retention_ms = step.coordinator.settings.offsets_retention_minutes * 60_000
    old = [
        offset
        for topic, partitions in group.offsets.items()
        if not group.is_subscribed_to(topic)
        for offset in partitions.values()
        if _has_expired(offset, since_empty, step.wall_ms, retention_ms)
    ]
    for offset in old:
        step.persist(OffsetTombstone(group.group_id, offset.topic, offset.partition, step.wall_ms))
    return not group.offsets


def _has_expired(offset: OffsetCommitRecord, since_empty_ms: int | None, wall_ms: int, retention_ms: int) -> bool:
    if offset.expire_timestamp_ms is not None:
        return wall_ms >= offset.expire_timestamp_ms
    since_ms = offset.commit_timestamp_ms if since_empty_ms is None else since_empty_ms
    return wall_ms - since_ms >= retention_ms


def delete_group(step: Step, group: Group, reason: str = "") -> None:
    """Remove an Empty group with all that belongs to it."""
    for topic, partitions in list(group.offsets.items()):
        for partition in list(partitions):
            step.persist(OffsetTombstone(group.group_id, topic, partition, step.wall_ms))
    for member_id in group.pending_joins:
        step.end_session(group, member_id)
    step.persist(GroupMetadataTombstone(group.group_id, step.wall_ms))
    step.persist(GenerationFloor(group.group_id, None))
    group.pending_event.set_cause(Cause.GROUP_DELETED, reason)
    step.emit(group, EventType.DELETED)
