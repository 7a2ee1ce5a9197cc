"""Committed offsets of groups of any type: OffsetCommit, OffsetFetch and OffsetDelete."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from broker.cores.groups.group import Committer, Group
from broker.cores.groups.pending_offsets import GroupPending
from broker.cores.groups.records import OffsetCommitRecord, OffsetTombstone, PendingOffset, PendingOffsetsRemoval
from broker.cores.groups.step import Step
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from broker.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from broker.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from broker.protocol.wire_types import Gradual

RequestTopic = TypeVar("RequestTopic", bound=Any)
UnknownPartitions: TypeAlias = "dict[str, list[int]]"  # by topic
Commit: TypeAlias = "Callable[[str, Any], ErrorCode]"  # commits an offset of a topic, and returns its error
# By topic and partition. A pending offset in place of a committed one stands for an error.
Fetchable: TypeAlias = "Mapping[str, Mapping[int, OffsetCommitRecord | PendingOffset]]"

# The latest time that a record can hold.
LATEST_MS = 2**63 - 1
# Kafka limits the batch that a request makes to 1 MiB, which holds about as many commits.
MAX_COMMITTED_PARTITIONS = 10_000
# A longer answer with all offsets of a group is gradual.
FETCHED_AT_ONCE, TOPICS_AT_ONCE = 1_000, 10


def commit_offsets(step: Step, request: OffsetCommitRequest) -> None:
    """Kafka checks partitions before the group: a request that names only unknown ones does not reach the group."""
    existing, unknown = split_by_existence(step, request.topics)
    topics = [] if unknown and not existing else _commit_topics(step, request, existing)
    add_unknown(topics, unknown, OffsetCommitResponse)
    step.reply(OffsetCommitResponse(topics=topics))


def _commit_topics(
    step: Step, request: OffsetCommitRequest, topics: list[OffsetCommitRequest.Topic]
) -> list[OffsetCommitResponse.Topic]:
    group = step.groups.get(request.group_id)
    refused = commit_refusal(group, _check_commit(step, group, request), topics)
    if not refused and group is not None:
        group.on_commit(step, request.member_id)
    return answered_topics(OffsetCommitResponse, topics, refusing(refused) if refused else _committing(step, request))


def _check_commit(step: Step, group: Group | None, request: OffsetCommitRequest) -> ErrorCode:
    generation = request.generation_id_or_member_epoch
    if group is not None:
        version = step.request.api_version
        return group.check_commit(Committer(request.member_id, request.group_instance_id, generation, version))
    if generation < 0:
        return ErrorCode.NONE
    return ErrorCode.GROUP_ID_NOT_FOUND if step.request.api_version >= 9 else ErrorCode.ILLEGAL_GENERATION


def _committing(step: Step, request: OffsetCommitRequest) -> Commit:
    """What commits one offset of a request, which may have ten thousand."""
    group_id, now_ms, retention_ms = request.group_id, step.wall_ms, request.retention_time_ms
    expire_ms = None if retention_ms == -1 else min(now_ms + retention_ms, LATEST_MS)
    longest = step.coordinator.settings.offset_metadata_max_bytes
    pending, persist = step.coordinator.hard.pending, step.persist
    has_pending = pending.of_group(group_id) is not None

    def commit(topic: str, partition: OffsetCommitRequest.Partition) -> ErrorCode:
        metadata, index = partition.committed_metadata or "", partition.partition_index
        if metadata and is_too_long(metadata, longest):
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        offset, leader_epoch = partition.committed_offset, partition.committed_leader_epoch
        persist(OffsetCommitRecord(group_id, topic, index, offset, leader_epoch, metadata, now_ms, expire_ms))
        if has_pending:
            for loser in pending.losers(group_id, topic, index):
                persist(loser)
        return ErrorCode.NONE

    return commit


def commit_refusal(group: Group | None, refused: ErrorCode, topics: Sequence[Any]) -> ErrorCode:
    """The error of a whole commit: of its sender, or of its size. The next event of the group counts it."""
    if not refused and sum(len(topic.partitions) for topic in topics) > MAX_COMMITTED_PARTITIONS:
        refused = ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    if refused and group is not None:
        group.pending_event.commits_rejected += 1
    return refused


def refusing(error: ErrorCode) -> Commit:
    return lambda topic, partition: error


def answered_topics(response: Any, topics: Iterable[Any], commit: Commit) -> list[Any]:
    """Commit each partition, and answer with its error. `response` is the class of the response."""
    partition_of = response.Partition
    return [
        response.Topic(
            name=(name := topic.name),
            partitions=[
                partition_of(partition_index=partition.partition_index, error_code=commit(name, partition))
                for partition in topic.partitions
            ],
        )
        for topic in topics
    ]


def is_too_long(metadata: str, limit: int) -> bool:
    # Kafka counts UTF-16 code units; a character has one or two.
    if len(metadata) * 2 <= limit:
        return False
    return len(metadata.encode("utf-16-le", "surrogatepass")) // 2 > limit


def fetch_offsets(step: Step, request: OffsetFetchRequest) -> None:
    def fetch(group: Group | None, group_id: str, asked: list[OffsetFetchRequest.Topic] | None) -> Any:
        offsets: Fetchable = group.offsets if group is not None else {}
        pending = step.coordinator.hard.pending.of_group(group_id) if request.require_stable else None
        if pending is not None:
            offsets = _with_pending(offsets, pending, only_committed=asked is None)
        return _fetch(offsets, asked)

    if step.request.api_version < 8:
        topics: Any = fetch(step.groups.get(request.group_id), request.group_id, request.topics)
        return step.reply(OffsetFetchResponse(topics=topics), is_gradual=isinstance(topics, Gradual))

    def answer(asked: OffsetFetchRequest.Group) -> OffsetFetchResponse.Group:
        group = step.groups.get(asked.group_id)
        refused = ErrorCode.NONE if group is None else group.check_fetch(asked.member_id, asked.member_epoch)
        topics: Any = [] if refused else fetch(group, asked.group_id, asked.topics)
        return OffsetFetchResponse.Group(group_id=asked.group_id, topics=topics, error_code=refused)

    groups = [answer(asked) for asked in request.groups]
    is_gradual = any(isinstance(group.topics, Gradual) for group in groups)
    return step.reply(OffsetFetchResponse(groups=groups), is_gradual=is_gradual)


def _with_pending(offsets: Fetchable, pending: GroupPending, *, only_committed: bool) -> Fetchable:
    """The offsets with a pending one in place of each that is not stable. An answer with all offsets has only committed ones."""
    merged = dict(offsets)
    for topic, partitions in pending.items():
        committed = offsets.get(topic, {})
        unstable = {
            partition: next(iter(producers.values()))
            for partition, producers in partitions.items()
            if partition in committed or not only_committed
        }
        if unstable:
            merged[topic] = {**committed, **unstable}
    return merged


def _fetch(offsets: Fetchable, topics: list[OffsetFetchRequest.Topic] | None) -> Any:
    """The topics of the answer, as a list or `Gradual`."""
    if topics is None:
        if sum(map(len, offsets.values())) > FETCHED_AT_ONCE:
            snapshot = [(topic, list(partitions.values())) for topic, partitions in offsets.items()]
            return Gradual(snapshot, _all_of_topic, TOPICS_AT_ONCE)
        return [_fetched(topic, offsets[topic], offsets[topic]) for topic in offsets]
    return [_fetched(topic.name, topic.partition_indexes, offsets.get(topic.name, {})) for topic in topics]


def _all_of_topic(source: tuple[str, list[OffsetCommitRecord | PendingOffset]]) -> OffsetFetchResponse.Topic:
    topic, committed = source
    partitions: Any = Gradual(committed, _fetched_offset, FETCHED_AT_ONCE)
    if len(committed) <= FETCHED_AT_ONCE:
        partitions = list(partitions)
    return OffsetFetchResponse.Topic(name=topic, partitions=partitions)


def _fetched_offset(committed: OffsetCommitRecord | PendingOffset) -> OffsetFetchResponse.Partition:
    return _fetched_partition(committed.partition, committed)


def _fetched(
    topic: str, partitions: Iterable[int], offsets: Mapping[int, OffsetCommitRecord | PendingOffset]
) -> OffsetFetchResponse.Topic:
    return OffsetFetchResponse.Topic(
        name=topic, partitions=[_fetched_partition(partition, offsets.get(partition)) for partition in partitions]
    )


def _fetched_partition(
    partition: int, committed: OffsetCommitRecord | PendingOffset | None
) -> OffsetFetchResponse.Partition:
    if committed is None or isinstance(committed, PendingOffset):
        error = ErrorCode.NONE if committed is None else ErrorCode.UNSTABLE_OFFSET_COMMIT
        return OffsetFetchResponse.Partition(
            partition_index=partition, committed_offset=-1, metadata="", error_code=error
        )
    return OffsetFetchResponse.Partition(
        partition_index=partition,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
    )


def delete_offsets(step: Step, request: OffsetDeleteRequest) -> None:
    """Kafka checks the group before partitions: an error of the group leaves the topics out of the response."""
    group = step.groups.get(request.group_id)
    refused = _check_delete(group, request)
    if refused or group is None:
        return step.reply(OffsetDeleteResponse(error_code=refused, topics=[]))
    existing, unknown = split_by_existence(step, request.topics)
    topics = [_delete(step, group, topic) for topic in existing]
    add_unknown(topics, unknown, OffsetDeleteResponse)
    return step.reply(OffsetDeleteResponse(topics=topics))


def _check_delete(group: Group | None, request: OffsetDeleteRequest) -> ErrorCode:
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND
    return group.check_offset_delete()


def _delete(step: Step, group: Group, topic: OffsetDeleteRequest.Topic) -> OffsetDeleteResponse.Topic:
    error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if group.is_subscribed_to(topic.name) else ErrorCode.NONE
    if not error:
        for partition in topic.partitions:
            index = partition.partition_index
            if index in group.offsets.get(topic.name, ()):
                step.persist(OffsetTombstone(group.group_id, topic.name, index, step.wall_ms))
            for producer_id in list(step.coordinator.hard.pending.of_partition(group.group_id, topic.name, index)):
                step.persist(PendingOffsetsRemoval(producer_id, group.group_id, ((topic.name, index),)))
    return OffsetDeleteResponse.Topic(
        name=topic.name,
        partitions=[
            OffsetDeleteResponse.Partition(partition_index=partition.partition_index, error_code=error)
            for partition in topic.partitions
        ],
    )


def split_by_existence(step: Step, topics: list[RequestTopic]) -> tuple[list[RequestTopic], UnknownPartitions]:
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


def add_unknown(topics: list[Any], unknown: UnknownPartitions, response: Any) -> None:
    """Answer for the unknown partitions, in the entry of their topic if the response has one."""
    if not unknown:
        return
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
