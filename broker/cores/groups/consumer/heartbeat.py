"""ConsumerGroupHeartbeat, the only request by which members join, stay and leave.

What a heartbeat does, once it is valid:

1. The member is created or updated. If what it subscribes to has changed, or the topics have, the group epoch grows.
2. If the group epoch is ahead of the target assignment, the assignor computes another one, for all members.
3. The member takes the next step to its target (`reconciliation`).

The answer has an assignment only if the member joins, has sent a full request, or gets another assignment than it had.
Everything is computed first and then persisted, so that a refused heartbeat changes nothing.
"""

from __future__ import annotations

from broker.cores.groups.consumer import regexes, statics
from broker.cores.groups.consumer.advance import advance, check_room, store
from broker.cores.groups.consumer.changes import report, report_fenced
from broker.cores.groups.consumer.configs import heartbeat_interval_ms, session_timeout_ms
from broker.cores.groups.consumer.conversion import find_or_make
from broker.cores.groups.consumer.departures import leave
from broker.cores.groups.consumer.group import JOIN, REBALANCE, SESSION, SYNC, ConsumerGroup
from broker.cores.groups.consumer.member import ConsumerMember, MemberState, made_id, new_member
from broker.cores.groups.consumer.reconciliation import owns_only
from broker.cores.groups.consumer.upgrade import settle
from broker.cores.groups.records import StateRecord
from broker.cores.groups.records.consumer import MemberRecord, Owned, Subscription
from broker.cores.groups.refusals import Refused
from broker.cores.groups.step import Step
from broker.cores.groups.subscriptions import check_size
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

LEAVE, LEAVE_STATIC = -1, -2


def heartbeat(step: Step, request: ConsumerGroupHeartbeatRequest) -> None:
    try:
        _check(request, step.request.api_version, step.coordinator.settings.group_consumer_assignors)
        answer = leave(step, request) if request.member_epoch < 0 else _beat(step, request)
    except Refused as refused:
        if refused.code is ErrorCode.FENCED_MEMBER_EPOCH:
            _note_fenced(step, request)
        answer = ConsumerGroupHeartbeatResponse(error_code=refused.code, error_message=str(refused))
    step.reply(answer)


def _note_fenced(step: Step, request: ConsumerGroupHeartbeatRequest) -> None:
    group, member_id = step.groups.get(request.group_id), request.member_id
    if isinstance(group, ConsumerGroup) and member_id in group.members:
        known = group.members[member_id].current.member_epoch
        report_fenced(step, group, member_id, f"{member_id} sent member epoch {request.member_epoch}, not {known}")


def _check(request: ConsumerGroupHeartbeatRequest, version: int, assignors: tuple[str, ...]) -> None:
    """In Kafka's order. Raises Refused."""
    epoch = request.member_epoch
    if version >= 1 or epoch > 0 or epoch == LEAVE:
        _not_empty(request.member_id, "MemberId")
    _not_empty(request.group_id, "GroupId")
    _not_empty(request.instance_id, "InstanceId")
    _not_empty(request.rack_id, "RackId")
    problem = None
    if epoch == 0:
        if request.rebalance_timeout_ms == -1:
            problem = "RebalanceTimeoutMs must be provided in first request."
        elif request.topic_partitions is None or request.topic_partitions:
            problem = "TopicPartitions must be empty when (re-)joining."
        elif request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            problem = "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    elif epoch == LEAVE_STATIC and request.instance_id is None:
        problem = "InstanceId can't be null."
    elif epoch < LEAVE_STATIC:
        problem = "MemberEpoch is invalid."
    if problem is not None:
        raise Refused(ErrorCode.INVALID_REQUEST, problem)
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise Refused(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {', '.join(assignors)}.",
        )


def _not_empty(value: str | None, name: str) -> None:
    if value is not None and not value.strip():
        raise Refused(ErrorCode.INVALID_REQUEST, f"{name} can't be empty.")


def _beat(step: Step, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
    records: list[StateRecord] = []
    group = find_or_make(step, request.group_id, records, is_joining=request.member_epoch == 0)
    check_room(step, group, request.member_id)
    member_id = request.member_id or made_id(step.coordinator.new_id)
    member = _find_member(step, group, member_id, request, records)
    updated = member._replace(subscription=_subscription(step, member, request))

    is_bumped = group.generation == 0
    if updated != member:
        records.append(MemberRecord(group.group_id, member_id, updated.subscription, step.wall_ms))
        is_bumped |= updated.subscription.topic_names != member.subscription.topic_names
    expressions = regexes.change(step, group, member, updated, records)
    is_bumped |= expressions.is_resolved
    before, reported = updated, request.topic_partitions
    updated = advance(step, group, member, updated, reported, records, is_bumped=is_bumped)

    former, generation = step.groups.get(request.group_id), group.generation
    stored = store(step, group, updated, records)
    settle(step, former, group, stored)
    if expressions.is_refresh_due:
        regexes.resolve_soon(step, stored)
    _set_timers(step, stored, updated, has_moved=updated is not before)
    report(step, stored, generation)
    return _answer(step, request, member, updated)


def _find_member(
    step: Step,
    group: ConsumerGroup,
    member_id: str,
    request: ConsumerGroupHeartbeatRequest,
    records: list[StateRecord],
) -> ConsumerMember:
    """The member as it is before this heartbeat. Raises Refused."""
    is_joining = request.member_epoch == 0
    if request.instance_id is not None:
        member = statics.find(step, group, member_id, request.instance_id, records, is_joining=is_joining)
        if not is_joining:
            _check_epoch(member, request)
        return member
    found = group.members.get(member_id)
    if found is None:
        if not is_joining:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.group_id}.")
        return new_member(member_id)
    _check_epoch(found, request)
    return found


def _check_epoch(member: ConsumerMember, request: ConsumerGroupHeartbeatRequest) -> None:
    """A member may still have its previous epoch if the last answer was lost. Raises Refused."""
    received, current = request.member_epoch, member.current
    if received == current.member_epoch:
        return
    compared = "greater" if received > current.member_epoch else "smaller"
    if (
        compared == "smaller"
        and received == current.previous_member_epoch
        and owns_only(request.topic_partitions, current.assigned)
    ):
        return
    raise Refused(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {compared} member epoch ({received}) than the one known by the group "
        f"coordinator ({current.member_epoch}). The member must abandon all its partitions and rejoin.",
    )


def _subscription(step: Step, member: ConsumerMember, request: ConsumerGroupHeartbeatRequest) -> Subscription:
    """Raises Refused."""
    before, names, regex = member.subscription, request.subscribed_topic_names, request.subscribed_topic_regex
    check_size(names or ())
    return before._replace(
        instance_id=before.instance_id if request.instance_id is None else request.instance_id,
        rack_id=before.rack_id if request.rack_id is None else request.rack_id,
        client_id=step.request.client_id,
        client_host=step.request.client_host,
        topic_names=before.topic_names if names is None else frozenset(names),
        topic_regex=before.topic_regex if regex is None else regex,
        rebalance_timeout_ms=before.rebalance_timeout_ms
        if request.rebalance_timeout_ms == -1
        else request.rebalance_timeout_ms,
        server_assignor=before.server_assignor if request.server_assignor is None else request.server_assignor,
        classic=None,
    )


def _set_timers(step: Step, group: ConsumerGroup, member: ConsumerMember, *, has_moved: bool) -> None:
    group.heartbeats_ms[member.member_id] = step.now_ms
    session_ms = session_timeout_ms(step.coordinator, group.group_id)
    step.timers.set((SESSION, group.group_id, member.member_id), step.now_ms + session_ms)
    for kind in (JOIN, SYNC):
        # It may have spoken the classic protocol before.
        step.timers.cancel((kind, group.group_id, member.member_id))
    if not has_moved:
        return
    key = (REBALANCE, group.group_id, member.member_id)
    if member.current.state == MemberState.UNREVOKED_PARTITIONS:
        group.revoking[member.member_id] = member.current.member_epoch
        step.timers.set(key, step.now_ms + max(member.subscription.rebalance_timeout_ms, 0))
    else:
        group.revoking.pop(member.member_id, None)
        step.timers.cancel(key)


def _answer(
    step: Step, request: ConsumerGroupHeartbeatRequest, before: ConsumerMember, member: ConsumerMember
) -> ConsumerGroupHeartbeatResponse:
    is_full = (
        request.rebalance_timeout_ms != -1
        and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
        and request.topic_partitions is not None
    )
    has_changed = before.current.assigned != member.current.assigned
    return ConsumerGroupHeartbeatResponse(
        member_id=member.member_id,
        member_epoch=member.current.member_epoch,
        heartbeat_interval_ms=heartbeat_interval_ms(step.coordinator, request.group_id),
        assignment=_assignment(member.current.assigned) if not request.member_epoch or is_full or has_changed else None,
    )


def _assignment(owned: Owned) -> ConsumerGroupHeartbeatResponse.Assignment:
    return ConsumerGroupHeartbeatResponse.Assignment(
        topic_partitions=[
            ConsumerGroupHeartbeatResponse.TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in owned.items()
        ]
    )
