"""Members of the classic protocol in a consumer group: JoinGroup, SyncGroup, Heartbeat and LeaveGroup.

The coordinator assigns for them, too. A member joins whenever the group epoch is ahead of its own, when it has to give up partitions,
or when those that it waits for are free; the answer to its Heartbeat asks it to (REBALANCE_IN_PROGRESS). Its generation is its member
epoch: JoinGroup takes it a step to its target, and is answered at once; SyncGroup then gives it its assignment.

From the time that it is asked to join it has its rebalance timeout to do so, and again to sync.
"""

from __future__ import annotations

from broker.cores.groups.classic.group import RECORD_BYTES
from broker.cores.groups.classic.join import check_join, offer_of
from broker.cores.groups.classic.join import join_group as join_classic
from broker.cores.groups.classic.member import Offer
from broker.cores.groups.classic.replies import join_refused, sync_refused
from broker.cores.groups.classic.sessions import cause_of, leaving_members, reply_left
from broker.cores.groups.classic.sync import check_sync, differs
from broker.cores.groups.consumer import downgrade, statics
from broker.cores.groups.consumer.advance import advance, check_room, store
from broker.cores.groups.consumer.changes import report
from broker.cores.groups.consumer.departures import Departure, remove, remove_all
from broker.cores.groups.consumer.embedded import by_id, encoded_assignment
from broker.cores.groups.consumer.group import JOIN, REBALANCE, SESSION, SYNC, ConsumerGroup
from broker.cores.groups.consumer.member import ConsumerMember, MemberState, made_id, new_member
from broker.cores.groups.consumer.reconciliation import Reported
from broker.cores.groups.events import Cause
from broker.cores.groups.group import Handlers
from broker.cores.groups.records import StateRecord
from broker.cores.groups.records.consumer import ClassicProtocols, MemberRecord, RegexRecord
from broker.cores.groups.refusals import Refused
from broker.cores.groups.step import Step
from broker.cores.groups.subscriptions import check_size
from broker.protocol.consumer_protocol import ConsumerProtocolSubscription, decode_subscription
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from broker.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from broker.protocol.messages.leave_group import LeaveGroupRequest
from broker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from broker.protocol.wire_types import DecodeError


def _group(step: Step, group_id: str) -> ConsumerGroup:
    group = step.groups[group_id]
    assert isinstance(group, ConsumerGroup)
    return group


# ---- JoinGroup -----------------------------------------------------------------------------------------------------


def join_group(step: Step, request: JoinGroupRequest) -> None:
    group, version = _group(step, request.group_id), step.request.api_version
    if not group.members:
        # It becomes a classic group.
        return join_classic(step, request)
    error = check_join(step, request)
    if error:
        return step.reply(join_refused(error, version, request.member_id))
    try:
        return step.reply(_join(step, group, request))
    except Refused as refused:
        return step.reply(join_refused(refused.code, version))


def _join(step: Step, group: ConsumerGroup, request: JoinGroupRequest) -> JoinGroupResponse:
    """Raises Refused."""
    version, instance_id, is_unknown = step.request.api_version, request.group_instance_id, not request.member_id
    member_id = request.member_id or made_id(step.coordinator.new_id)
    check_room(step, group, member_id)
    offer = offer_of(request, version)
    if not group.supports(offer.protocol_type, (name for name, _ in offer.protocols)):
        raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"Member {member_id}'s protocols are not supported.")
    if is_unknown and instance_id is None and version >= 4:
        # KIP-394. Unlike that of a classic group, the id is not kept: any client may join with an id of its own.
        return join_refused(ErrorCode.MEMBER_ID_REQUIRED, version, member_id)
    subscription = _subscription(offer)
    records: list[StateRecord] = []
    if instance_id is None:
        member = group.members.get(member_id) or new_member(member_id)
    else:
        member = statics.find(step, group, member_id, instance_id, records, is_joining=is_unknown, is_classic=True)
    updated = _updated(step, member, instance_id, offer, subscription)
    if updated != member:
        records.append(MemberRecord(group.group_id, member_id, updated.subscription, step.wall_ms))
    old_regex = member.subscription.topic_regex
    if old_regex and group.expressions.get(old_regex) == 1:
        records.append(RegexRecord(group.group_id, old_regex, None, step.wall_ms))
    is_bumped = bool(old_regex) or updated.subscription.topic_names != member.subscription.topic_names
    reported = _reported(step, subscription)
    updated = advance(step, group, member, updated, reported, records, is_bumped=is_bumped)

    holder = group.static_member(instance_id)
    if (
        holder is not None
        and holder.subscription.classic is None
        and downgrade.is_due(step, group, [holder], is_replaced=True)
    ):
        downgrade.downgrade_for(step, group, holder, updated, records)
    else:
        generation = group.generation
        stored = store(step, group, updated, records)
        _set_timers(step, stored, updated)
        report(step, stored, generation)
    return JoinGroupResponse(
        generation_id=updated.current.member_epoch,
        protocol_type=offer.protocol_type,
        protocol_name=offer.protocols[0][0],
        leader="",
        member_id=member_id,
        members=[],
    )


def _subscription(offer: Offer) -> ConsumerProtocolSubscription:
    """The subscription of the first protocol; those of the others are the same. Raises Refused."""
    if sum(len(metadata) for _, metadata in offer.protocols) > RECORD_BYTES:
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, "The protocols are too large to be stored.")
    try:
        subscription = decode_subscription(offer.protocols[0][1])
    except DecodeError:
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, "The embedded consumer protocol is malformed.") from None
    check_size(subscription.topics)
    return subscription


def _updated(
    step: Step,
    member: ConsumerMember,
    instance_id: str | None,
    offer: Offer,
    subscription: ConsumerProtocolSubscription,
) -> ConsumerMember:
    """As in Kafka, a member that spoke the consumer protocol keeps its assignor. In Kafka it keeps its regular expression, too, and may
    get topics that it has not subscribed to, at which its client joins again, without end.
    """
    before, timeout_ms = member.subscription, offer.rebalance_timeout_ms
    return member._replace(
        subscription=before._replace(
            instance_id=before.instance_id if instance_id is None else instance_id,
            rack_id=subscription.rack_id or before.rack_id,
            client_id=step.request.client_id,
            client_host=step.request.client_host,
            topic_names=frozenset(subscription.topics),
            topic_regex="",
            rebalance_timeout_ms=before.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
            classic=ClassicProtocols(offer.session_timeout_ms, offer.protocols),
        )
    )


def _reported(step: Step, subscription: ConsumerProtocolSubscription) -> Reported:
    """What the member says that it owns. An eager member has given up everything before it joins."""
    owned = by_id(subscription.owned_partitions, step.coordinator.topics)
    return [
        ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic_id, partitions=partitions)
        for topic_id, partitions in owned.items()
    ]


def _set_timers(step: Step, group: ConsumerGroup, member: ConsumerMember) -> None:
    group_id, member_id = group.group_id, member.member_id
    for kind in (JOIN, REBALANCE):
        step.timers.cancel((kind, group_id, member_id))
    group.revoking.pop(member_id, None)
    _renew_session(step, group, member)
    step.timers.set((SYNC, group_id, member_id), step.now_ms + max(member.subscription.rebalance_timeout_ms, 0))


# ---- SyncGroup and Heartbeat ---------------------------------------------------------------------------------------


def sync_group(step: Step, request: SyncGroupRequest) -> None:
    error = check_sync(request, step.request.api_version)
    if error:
        return step.reply(sync_refused(error))
    try:
        assignment = _synced(step, _group(step, request.group_id), request)
    except Refused as refused:
        return step.reply(sync_refused(refused.code))
    return step.reply(
        SyncGroupResponse(
            protocol_type=request.protocol_type, protocol_name=request.protocol_name, assignment=assignment
        )
    )


def _synced(step: Step, group: ConsumerGroup, request: SyncGroupRequest) -> bytes:
    """The assignment of the member. Raises Refused."""
    member = _member(group, request)
    classic = member.subscription.classic
    assert classic is not None
    name, metadata = classic.protocols[0]
    if differs(request.protocol_type, group.protocol_type) or differs(request.protocol_name, name):
        raise Refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"Member {member.member_id} has joined with {name}.")
    if group.generation > member.current.member_epoch and member.current.state != MemberState.UNREVOKED_PARTITIONS:
        _await_join(step, group, member)
        raise Refused(ErrorCode.REBALANCE_IN_PROGRESS, f"Member {member.member_id} must join again.")
    step.timers.cancel((SYNC, group.group_id, member.member_id))
    _renew_session(step, group, member)
    return encoded_assignment(member.current.assigned, metadata, step.coordinator.topics)


def heartbeat(step: Step, request: HeartbeatRequest) -> None:
    try:
        error = _heartbeat(step, _group(step, request.group_id), request)
    except Refused as refused:
        error = refused.code
    step.reply(HeartbeatResponse(error_code=error))


def _heartbeat(step: Step, group: ConsumerGroup, request: HeartbeatRequest) -> ErrorCode:
    """Raises Refused."""
    member = _member(group, request)
    _renew_session(step, group, member)
    current = member.current
    # The epoch of a member that has to give up partitions is smaller, unless it has had them since before an upgrade.
    is_due = current.member_epoch < group.generation or current.state == MemberState.UNREVOKED_PARTITIONS
    if not is_due and current.state == MemberState.UNRELEASED_PARTITIONS:
        is_due = not group.is_waiting(member)
    if is_due:
        _await_join(step, group, member)
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def _member(group: ConsumerGroup, request: SyncGroupRequest | HeartbeatRequest) -> ConsumerMember:
    """The classic member that has sent this request in its present generation. Raises Refused."""
    member_id, instance_id = request.member_id, request.group_instance_id
    if instance_id is None:
        member = group.members.get(member_id)
    else:
        member = statics.held_by(group.static_member(instance_id), member_id, instance_id)
    if member is None or member.subscription.classic is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"{member_id} is not a classic member of group {group.group_id}.")
    if request.generation_id != member.current.member_epoch:
        raise Refused(ErrorCode.ILLEGAL_GENERATION, f"Member {member_id} is in epoch {member.current.member_epoch}.")
    return member


def _renew_session(step: Step, group: ConsumerGroup, member: ConsumerMember) -> None:
    classic = member.subscription.classic
    assert classic is not None
    group.heartbeats_ms[member.member_id] = step.now_ms
    step.timers.set((SESSION, group.group_id, member.member_id), step.now_ms + classic.session_timeout_ms)


def _await_join(step: Step, group: ConsumerGroup, member: ConsumerMember) -> None:
    """The member must join within its rebalance timeout, from the first time that it is asked to."""
    key = (JOIN, group.group_id, member.member_id)
    if key not in step.timers:
        step.timers.set(key, step.now_ms + max(member.subscription.rebalance_timeout_ms, 0))


def on_join_timeout(step: Step, group_id: str, member_id: str) -> None:
    _remove_late(step, group_id, member_id, Cause.REBALANCE_TIMED_OUT)


def on_sync_timeout(step: Step, group_id: str, member_id: str) -> None:
    _remove_late(step, group_id, member_id, Cause.SYNC_TIMED_OUT)


def _remove_late(step: Step, group_id: str, member_id: str, cause: Cause) -> None:
    group = step.groups.get(group_id)
    if isinstance(group, ConsumerGroup) and member_id in group.members:
        remove(step, group, group.members[member_id], cause)


# ---- LeaveGroup ----------------------------------------------------------------------------------------------------


def leave_group(step: Step, request: LeaveGroupRequest) -> None:
    """Members of either protocol can be removed."""
    group = _group(step, request.group_id)
    errors, departures = [], dict[str, Departure]()
    for leaving in leaving_members(step, request):
        try:
            member = _leaving(group, leaving)
        except Refused as refused:
            errors.append(refused.code)
            continue
        errors.append(ErrorCode.NONE)
        departures[member.member_id] = Departure(member, cause_of(leaving), leaving.reason or "")
    if departures:
        remove_all(step, group, list(departures.values()))
    reply_left(step, request, errors)


def _leaving(group: ConsumerGroup, leaving: LeaveGroupRequest.Member) -> ConsumerMember:
    """Raises Refused."""
    member_id, instance_id = leaving.member_id, leaving.group_instance_id
    if instance_id is None:
        found = group.members.get(member_id)
        if found is None:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.group_id}.")
        return found
    holder = group.static_member(instance_id)
    # An admin may name a static member by its instance id alone.
    return statics.held_by(holder, member_id or (holder.member_id if holder is not None else ""), instance_id)


HANDLERS: Handlers = {
    JoinGroupRequest: join_group,
    SyncGroupRequest: sync_group,
    HeartbeatRequest: heartbeat,
    LeaveGroupRequest: leave_group,
}
