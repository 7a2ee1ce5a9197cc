"""JoinGroup: ids for new members, members added and updated, and the requests that park until the join phase ends."""

from __future__ import annotations

from broker.cores.groups.classic import rebalance, static_members
from broker.cores.groups.classic.replies import join_refused, joined, members_for_leader
from broker.cores.groups.events import Cause
from broker.cores.groups.group import Group, GroupState, Member, Offer, protocols_of
from broker.cores.groups.step import SESSION, Step
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.join_group import JoinGroupRequest
from broker.protocol.wire_types import STRING_BYTES

# A new member cannot heartbeat before its first generation: for so long it may wait parked.
NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
# The most that one character takes.
UTF8_BYTES = 4


def join_group(step: Step, request: JoinGroupRequest) -> None:
    version = step.request.api_version
    settings = step.coordinator.settings
    member_id = request.member_id
    if not request.group_id:
        return step.reply(join_refused(ErrorCode.INVALID_GROUP_ID, version, member_id))
    timeout = request.session_timeout_ms
    if not settings.group_min_session_timeout_ms <= timeout <= settings.group_max_session_timeout_ms:
        return step.reply(join_refused(ErrorCode.INVALID_SESSION_TIMEOUT, version, member_id))
    group = step.groups.get(request.group_id)
    if group is None:
        if member_id:
            return step.reply(join_refused(ErrorCode.UNKNOWN_MEMBER_ID, version, member_id))
        group = _create(step, request.group_id)
    if not _has_room_for(group, member_id, settings.group_max_size):
        _turn_away(step, group, member_id)
        return step.reply(join_refused(ErrorCode.GROUP_MAX_SIZE_REACHED, version))
    offer = _offer_of(request, version)
    if not group.supports(offer):
        return step.reply(join_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, version, member_id))
    if not _fits_in_record(step, group, request, offer):
        # What Kafka makes of a record that is too large.
        return step.reply(join_refused(ErrorCode.UNKNOWN_SERVER_ERROR, version, member_id))
    if not member_id:
        return _join_without_id(step, group, request, offer)
    if member_id in group.pending_joins:
        return _join_with_given_id(step, group, request, offer)
    return _join_again(step, group, request, offer)


def _offer_of(request: JoinGroupRequest, version: int) -> Offer:
    return Offer(
        request.protocol_type,
        protocols_of((protocol.name, protocol.metadata) for protocol in request.protocols),
        request.rebalance_timeout_ms if version >= 1 else request.session_timeout_ms,
        request.session_timeout_ms,
    )


def _create(step: Step, group_id: str) -> Group:
    fresh = Group(group_id, offsets_loaded=True)
    fresh.state_timestamp_ms = step.wall_ms
    step.persist(fresh.to_record(step.wall_ms))
    group = step.groups[group_id]
    group.state_timestamp_ms = step.wall_ms
    return group


def _has_room_for(group: Group, member_id: str, max_size: int) -> bool:
    if group.state is GroupState.EMPTY:
        return True
    member = group.members.get(member_id)
    if group.state is GroupState.PREPARING_REBALANCE:
        # Those who have joined count, so that the last to come back are turned away when the limit was lowered.
        return (member is not None and member.parked_join is not None) or group.awaiting_joins < max_size
    return member is not None or len(group.members) < max_size


def _fits_in_record(step: Step, group: Group, request: JoinGroupRequest, offer: Offer) -> bool:
    instance_id = request.group_instance_id or ""
    replaced = group.members.get(request.member_id or group.static_members.get(instance_id, ""))
    client_id = step.request.client_id
    names = len(request.member_id or instance_id or client_id) + len(instance_id) + len(client_id)
    return group.has_room_for_names(offer, names, replaced)


def _turn_away(step: Step, group: Group, member_id: str) -> None:
    if member_id in group.members or member_id in group.pending_joins:
        if member_id in group.members:
            group.note_change(Cause.MEMBER_LEFT, left=[member_id], reason="the group is full")
        group.remove(member_id)
        step.end_session(group, member_id)


def _join_without_id(step: Step, group: Group, request: JoinGroupRequest, offer: Offer) -> None:
    instance_id = request.group_instance_id
    member_id = _made_up(step.request.client_id if instance_id is None else instance_id, step.coordinator.new_id())
    if instance_id is not None:
        if instance_id in group.static_members:
            return static_members.replace(step, group, request, offer, member_id)
        return _add(step, group, request, offer, member_id)
    if step.request.api_version >= 4:
        # KIP-394: only who comes back with its id becomes a member, so that lost answers leave no dead members behind.
        group.pending_joins[member_id] = None
        step.timers.set((SESSION, group.group_id, member_id), step.now_ms + request.session_timeout_ms)
        refused = join_refused(ErrorCode.MEMBER_ID_REQUIRED, step.request.api_version, member_id)
        return step.reply(refused)
    return _add(step, group, request, offer, member_id)


def _made_up(name: str, unique: str) -> str:
    """A member id, with as much of the name as leaves it a text that a record can hold. It is the end that tells ids apart."""
    end = f"-{unique}"
    whole = name + end
    if len(whole) * UTF8_BYTES <= STRING_BYTES:
        return whole
    return name.encode()[: STRING_BYTES - len(end.encode())].decode(errors="ignore") + end


def _join_with_given_id(step: Step, group: Group, request: JoinGroupRequest, offer: Offer) -> None:
    if request.group_instance_id is not None:
        # Ids are given out to dynamic members only.
        return step.reply(join_refused(ErrorCode.UNKNOWN_SERVER_ERROR, step.request.api_version))
    return _add(step, group, request, offer, request.member_id)


def _join_again(step: Step, group: Group, request: JoinGroupRequest, offer: Offer) -> None:
    version = step.request.api_version
    error = group.fence(request.member_id, request.group_instance_id)
    if error:
        return step.reply(join_refused(error, version, request.member_id))
    member = group.members[request.member_id]
    is_leader = member.member_id == group.leader
    has_changed = member.protocols != offer.protocols
    if group.state is GroupState.COMPLETING_REBALANCE and not has_changed:
        # The answer to its join was lost.
        return step.reply(joined(group, member, members_for_leader(group) if is_leader else []))
    if group.state is GroupState.STABLE and not has_changed and not is_leader:
        return step.reply(joined(group, member, []))
    if group.state is not GroupState.PREPARING_REBALANCE:
        # A leader rebalances by joining again: topics may have changed that its metadata does not show.
        reason = request.reason or ("" if has_changed else "the leader joined again")
        group.note_change(Cause.SUBSCRIPTION_CHANGED, reason=reason)
    group.update(member, offer)
    group.park_join(member, step.park())
    return rebalance.prepare_or_go_on(step, group)


def _add(step: Step, group: Group, request: JoinGroupRequest, offer: Offer, member_id: str) -> None:
    if group.state is GroupState.PREPARING_REBALANCE and group.previous_state is GroupState.EMPTY:
        group.new_member_added = True
    member = Member(
        member_id,
        request.group_instance_id,
        step.request.client_id,
        step.request.client_host,
        offer.rebalance_timeout_ms,
        offer.session_timeout_ms,
        offer.protocols,
        parked_join=step.park(),
        is_new=True,
        heard_ms=step.now_ms,
    )
    group.add(member, offer.protocol_type)
    step.timers.set((SESSION, group.group_id, member_id), step.now_ms + NEW_MEMBER_JOIN_TIMEOUT_MS)
    group.note_change(Cause.MEMBER_JOINED, joined=[member_id], reason=request.reason or "")
    rebalance.prepare_or_go_on(step, group)
