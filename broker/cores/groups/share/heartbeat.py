"""ShareGroupHeartbeat, the only request by which members of share groups join, stay and leave.

What a heartbeat does, once it is valid:

1. The member is created or updated. If what it subscribes to has changed, the topics have, or partitions have got state since the
   last target, the group epoch grows.
2. If the group epoch is ahead of the target assignment, the assignor computes another one, for all members.
3. The member gets its target. Partitions are shared, so no other member has to give up anything before.
4. Partitions of subscribed topics that the share coordinator does not know get their state; the next heartbeat assigns them.

Everything is computed first and then persisted, so that a refused heartbeat changes nothing.
"""

from __future__ import annotations

from broker.cores.groups.events import Cause
from broker.cores.groups.metadata_hash import metadata_hash
from broker.cores.groups.records import StateRecord
from broker.cores.groups.records.consumer import Owned
from broker.cores.groups.records.share import (
    ShareCurrent,
    ShareCurrentRecord,
    ShareEpochRecord,
    ShareMemberRecord,
    ShareTargetRecord,
)
from broker.cores.groups.refusals import Refused
from broker.cores.groups.share.changes import note_joined, report
from broker.cores.groups.share.configs import heartbeat_interval_ms, session_timeout_ms
from broker.cores.groups.share.departures import leave
from broker.cores.groups.share.group import NO_TARGET, SESSION, ShareGroup
from broker.cores.groups.share.lookup import unknown_member
from broker.cores.groups.share.member import STABLE, ShareMember, new_member
from broker.cores.groups.share.partitions import initialize_missing
from broker.cores.groups.share.target import new_target
from broker.cores.groups.step import Step
from broker.cores.groups.subscriptions import check_size
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

LEAVE = -1
# Partitions have just got state, or their members have left.
_UNASSIGNED = "partitions had no member"


def heartbeat(step: Step, request: ShareGroupHeartbeatRequest) -> None:
    try:
        _check(request)
        answer = leave(step, request) if request.member_epoch == LEAVE else _beat(step, request)
    except Refused as refused:
        answer = ShareGroupHeartbeatResponse(error_code=refused.code, error_message=str(refused))
    step.reply(answer)


def _check(request: ShareGroupHeartbeatRequest) -> None:
    """In Kafka's order. Raises Refused."""
    for name, text in (("MemberId", request.member_id), ("GroupId", request.group_id), ("RackId", request.rack_id)):
        if text is not None and not text.strip():
            raise Refused(ErrorCode.INVALID_REQUEST, f"{name} can't be empty.")
    if request.member_epoch == 0 and not request.subscribed_topic_names:
        raise Refused(ErrorCode.INVALID_REQUEST, "SubscribedTopicNames must be set in first request.")
    if request.member_epoch < LEAVE:
        raise Refused(ErrorCode.INVALID_REQUEST, "MemberEpoch is invalid.")


def _beat(step: Step, request: ShareGroupHeartbeatRequest) -> ShareGroupHeartbeatResponse:
    group = _find_or_make(step, request)
    _check_room(step, group, request.member_id)
    member = _find_member(group, request)
    updated = _updated(step, member, request)
    records: list[StateRecord] = []
    if updated.subscription != member.subscription:
        records.append(ShareMemberRecord(group.group_id, member.member_id, updated.subscription, step.wall_ms))
    has_other_topics = updated.subscription.topic_names != member.subscription.topic_names

    catalog = step.coordinator.topics
    epoch, version, hashed = group.generation, catalog.version, group.metadata_hash
    has_unassigned = group.has_unassigned_partitions()
    is_bumped = has_other_topics or has_unassigned
    # Nearly all heartbeats change nothing.
    may_change = is_bumped or group.seen_version != version or group.complete_version != version
    named = group.subscriptions_with(updated, member) if may_change else group.named
    if is_bumped or group.seen_version != version:
        hashed = metadata_hash(named, catalog)
        if is_bumped or hashed != group.metadata_hash:
            epoch += 1
            records.append(ShareEpochRecord(group.group_id, epoch, hashed, step.wall_ms))

    target_epoch, target = group.assignment_epoch, group.targets.get(member.member_id, NO_TARGET)
    if epoch > target_epoch:
        members = len(group.members) + (member.member_id not in group.members)
        is_homogeneous = all(found == members for found in named.values())
        target_epoch = epoch
        target = new_target(step, group, epoch, updated, is_homogeneous=is_homogeneous, records=records)
    if updated.current.member_epoch != target_epoch:
        assigned = {topic_id: frozenset(partitions) for topic_id, partitions in target.items()}
        current = ShareCurrent(target_epoch, updated.current.member_epoch, STABLE, assigned)
        updated = updated._replace(current=current)
        records.append(ShareCurrentRecord(group.group_id, member.member_id, current, step.wall_ms))

    generation, is_new = group.generation, member.member_id not in group.members
    is_same_hash = hashed == group.metadata_hash
    for record in records:
        step.persist(record)
    stored = step.groups[request.group_id]
    assert isinstance(stored, ShareGroup)
    stored.seen_version = version
    timeout_ms = session_timeout_ms(step.coordinator, stored.group_id)
    step.timers.set((SESSION, stored.group_id, member.member_id), step.now_ms + timeout_ms)
    stored.heartbeats_ms[member.member_id] = step.now_ms
    if is_new and len(stored.members) == 1:
        stored.state_since_ms = step.wall_ms
    cause: Cause | None = Cause.SUBSCRIPTION_CHANGED if has_other_topics else Cause.TOPICS_CHANGED
    if not has_other_topics and is_same_hash and group.is_rebalancing:
        cause = None  # what a member has left is assigned
    if is_new:
        cause = None
        note_joined(stored, stored.members[member.member_id])
    has_changed = has_other_topics or any(isinstance(record, ShareTargetRecord) for record in records)
    reason = _UNASSIGNED if has_unassigned and not has_other_topics else ""
    report(step, stored, generation, has_changed=has_changed, cause=cause, reason=reason)
    if stored.complete_version != version:
        initialize_missing(step, stored, named)
    return _answer(step, request, member, updated)


def _find_or_make(step: Step, request: ShareGroupHeartbeatRequest) -> ShareGroup:
    """The group as it is before this heartbeat. One that does not exist yet is made by the records of the heartbeat. Raises Refused."""
    group = step.groups.get(request.group_id)
    if isinstance(group, ShareGroup):
        return group
    if group is not None:
        raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} is not a share group.")
    if request.member_epoch != 0:
        raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Share group {request.group_id} not found.")
    return ShareGroup(request.group_id, offsets_loaded=True)


def _check_room(step: Step, group: ShareGroup, member_id: str) -> None:
    limit = step.coordinator.settings.group_share_max_size
    if len(group.members) >= limit and member_id not in group.members:
        raise Refused(
            ErrorCode.GROUP_MAX_SIZE_REACHED, f"The share group has reached its maximum capacity of {limit} members."
        )


def _find_member(group: ShareGroup, request: ShareGroupHeartbeatRequest) -> ShareMember:
    """The member as it is before this heartbeat; it may have its previous epoch if the last answer was lost. Raises Refused."""
    member = group.members.get(request.member_id)
    received = request.member_epoch
    if member is None:
        if received != 0:
            raise unknown_member(group, request.member_id)
        return new_member(request.member_id)
    current = member.current
    if received > current.member_epoch:
        raise Refused(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The share group member has a greater member epoch ({received}) than the one known by the group coordinator "
            f"({current.member_epoch}). The member must abandon all its partitions and rejoin.",
        )
    if received < current.member_epoch and received != current.previous_member_epoch:
        raise Refused(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"The share group member has a smaller member epoch ({received}) than the one known by the group coordinator "
            f"({current.member_epoch}), and it does not match the previous member epoch "
            f"({current.previous_member_epoch}). The member must abandon all its partitions and rejoin.",
        )
    return member


def _updated(step: Step, member: ShareMember, request: ShareGroupHeartbeatRequest) -> ShareMember:
    """Raises Refused."""
    before, names = member.subscription, request.subscribed_topic_names
    check_size(names or ())
    return member._replace(
        subscription=before._replace(
            rack_id=before.rack_id if request.rack_id is None else request.rack_id,
            client_id=step.request.client_id,
            client_host=step.request.client_host,
            topic_names=before.topic_names if names is None else frozenset(names),
        )
    )


def _answer(
    step: Step, request: ShareGroupHeartbeatRequest, before: ShareMember, member: ShareMember
) -> ShareGroupHeartbeatResponse:
    """The assignment is sent to a member that joins, has sent its subscription, or gets another assignment than it had."""
    is_full = request.member_epoch == 0 or request.subscribed_topic_names is not None
    has_changed = before.current.assigned != member.current.assigned
    return ShareGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.current.member_epoch,
        heartbeat_interval_ms=heartbeat_interval_ms(step.coordinator, request.group_id),
        assignment=_assignment(member.current.assigned) if is_full or has_changed else None,
    )


def _assignment(owned: Owned) -> ShareGroupHeartbeatResponse.Assignment:
    return ShareGroupHeartbeatResponse.Assignment(
        topic_partitions=[
            ShareGroupHeartbeatResponse.TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in owned.items()
        ]
    )
