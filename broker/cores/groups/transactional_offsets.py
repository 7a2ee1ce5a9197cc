"""Offsets that transactions commit: TxnOffsetCommit, and the end of a transaction."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from broker.cores.groups.group import Committer, Group
from broker.cores.groups.offsets import (
    Commit,
    add_unknown,
    answered_topics,
    commit_refusal,
    is_too_long,
    refusing,
    split_by_existence,
)
from broker.cores.groups.records import OffsetCommitRecord, PendingOffset, PendingOffsetsRemoval
from broker.cores.groups.step import Step
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse


def commit_transactional_offsets(step: Step, request: TxnOffsetCommitRequest) -> None:
    """The caller has verified that the group is part of the ongoing transaction.

    As in Kafka, the state of the group does not matter and the commit does not renew the member's session.
    """
    existing, unknown = split_by_existence(step, request.topics)
    topics = [] if unknown and not existing else _commit_topics(step, request, existing)
    add_unknown(topics, unknown, TxnOffsetCommitResponse)
    step.reply(TxnOffsetCommitResponse(topics=topics))


def _commit_topics(
    step: Step, request: TxnOffsetCommitRequest, topics: list[TxnOffsetCommitRequest.Topic]
) -> list[TxnOffsetCommitResponse.Topic]:
    group = step.groups.get(request.group_id)
    refused = commit_refusal(group, _check_commit(step, group, request), topics)
    return answered_topics(
        TxnOffsetCommitResponse, topics, refusing(refused) if refused else _committing(step, request)
    )


def _check_commit(step: Step, group: Group | None, request: TxnOffsetCommitRequest) -> ErrorCode:
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    generation = request.generation_id
    if group is not None:
        version = step.request.api_version
        instance_id = request.group_instance_id
        return group.check_commit(Committer(request.member_id, instance_id, generation, version, is_transactional=True))
    return ErrorCode.NONE if generation < 0 else ErrorCode.ILLEGAL_GENERATION


def _committing(step: Step, request: TxnOffsetCommitRequest) -> Commit:
    """What makes one offset of a request pending, which may have ten thousand."""
    producer_id, producer_epoch, group_id = request.producer_id, request.producer_epoch, request.group_id
    longest = step.coordinator.settings.offset_metadata_max_bytes
    now_ms, persist = step.wall_ms, step.persist

    def commit(topic: str, partition: TxnOffsetCommitRequest.Partition) -> ErrorCode:
        metadata = partition.committed_metadata or ""
        if metadata and is_too_long(metadata, longest):
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        index, offset, leader_epoch = (
            partition.partition_index,
            partition.committed_offset,
            partition.committed_leader_epoch,
        )
        persist(
            PendingOffset(producer_id, producer_epoch, group_id, topic, index, offset, leader_epoch, metadata, now_ms)
        )
        return ErrorCode.NONE

    return commit


# ---- the end of a transaction ------------------------------------------------------------------------------------


def end_transaction(
    step: Step, producer_id: int, producer_epoch: int, has_ended: Callable[[str], bool], limit: int, *, is_commit: bool
) -> bool:
    """Commit or drop the producer's pending offsets of the groups for which the transaction ends, at most `limit` of them.

    True: more are left. What a later epoch of the producer has committed stays pending.
    """
    pending = step.coordinator.hard.pending
    ended_groups = [
        group_id
        for group_id in pending.groups_of(producer_id)
        if has_ended(group_id) and pending.epoch_of(producer_id, group_id) <= producer_epoch
    ]
    for group_id in ended_groups:
        if limit <= 0:
            return True
        places = pending.places_of(producer_id, group_id)
        ended = [pending.of_partition(group_id, *where)[producer_id] for where in islice(places, limit)]
        if is_commit:
            for record in ended:
                _commit_pending(step, record)
        if len(ended) == len(places):
            step.persist(PendingOffsetsRemoval(producer_id, group_id))
            limit -= len(ended)
            continue
        removed = tuple((record.topic, record.partition) for record in ended)
        step.persist(PendingOffsetsRemoval(producer_id, group_id, removed))
        return True
    return False


def _commit_pending(step: Step, record: PendingOffset) -> None:
    if record.superseded:
        return
    step.persist(
        OffsetCommitRecord(
            record.group_id,
            record.topic,
            record.partition,
            record.offset,
            record.leader_epoch,
            record.metadata,
            record.commit_timestamp_ms,
        )
    )
    pending = step.coordinator.hard.pending
    for loser in pending.losers(record.group_id, record.topic, record.partition, before=record.producer_id):
        step.persist(loser)


HANDLERS = {TxnOffsetCommitRequest: commit_transactional_offsets}
