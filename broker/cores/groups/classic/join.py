"""JoinGroup: gives ids to new members, adds and updates members, and parks their requests until the join phase ends.

The rule, for a request that passes the guards of `join_group`:

- without a member id and without an instance id, the client gets an id and must join again with it (KIP-394, from version 4);
- a new id, given out earlier or just generated, becomes a member, and a rebalance starts or continues;
- an instance id that the group knows replaces the static member (`static_members`);
- a member that joins again with unchanged protocols gets the present generation, if there is one and, in Stable, the member is
  not the leader; otherwise a rebalance starts or continues.

`rebalance` says when the join phase ends and who then belongs to the next generation.
"""

from __future__ import annotations

from broker.cores.groups.classic import rebalance, static_members
from broker.cores.groups.classic.group import ClassicGroup, find
from broker.cores.groups.classic.member import Member, Offer, distinct_protocols
from broker.cores.groups.classic.replies import join_refused, joined, members_for_leader
from broker.cores.groups.classic.states import GroupState
from broker.cores.groups.events import Cause
from broker.cores.groups.group import Group
from broker.cores.groups.step import Step
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.join_group import JoinGroupRequest
from broker.protocol.wire_types import STRING_BYTES

# The session of a new member until its first generation starts; it cannot send heartbeats while its JoinGroup is parked.
NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
# The most bytes that one character takes.
UTF8_BYTES = 4


def join_group(step: Step, request: JoinGroupRequest) -> None:
    version, member_id = step.request.api_version, request.member_id
    error = check_join(step, request)
    if error:
        return step.reply(join_refused(error, version, member_id))
    present, group = step.groups.get(request.group_id), find(step.groups, request.group_id)
    if group is None:
        if member_id:
            return step.reply(join_refused(ErrorCode.UNKNOWN_MEMBER_ID, version, member_id))
        if present is not None:
            _convert(step, present)
        group = _create(step, request.group_id)
    if not _has_room(group, member_id, step.coordinator.settings.group_max_size):
        _turn_away(step, group, member_id)
        return step.reply(join_refused(ErrorCode.GROUP_MAX_SIZE_REACHED, version))
    offer = offer_of(request, version)
    if not group.supports(offer):
        return step.reply(join_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, version, member_id))
    if not _fits_in_record(step, group, request, offer):
        # The error of a Kafka whose offsets topic refuses the record as too large.
        return step.reply(join_refused(ErrorCode.UNKNOWN_SERVER_ERROR, version, member_id))
    if not member_id:
        return _join_without_id(step, group, request, offer)
    if member_id in group.pending_joins:
        return _join_with_given_id(step, group, request, offer)
    return _join_again(step, group, request, offer)


def check_join(step: Step, request: JoinGroupRequest) -> ErrorCode:
    """What does not depend on the group."""
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    settings, timeout_ms = step.coordinator.settings, request.session_timeout_ms
    if not settings.group_min_session_timeout_ms <= timeout_ms <= settings.group_max_session_timeout_ms:
        return ErrorCode.INVALID_SESSION_TIMEOUT
    return ErrorCode.NONE


def _convert(step: Step, group: Group) -> None:
    """An Empty group of another type becomes a classic one, which keeps its offsets."""
    group.cancel_timers(step)
    for record in group.tombstones(step.wall_ms, keeps_offsets=True):
        step.persist(record)


def _create(step: Step, group_id: str) -> ClassicGroup:
    fresh = ClassicGroup(group_id, offsets_loaded=True)
    fresh.state_timestamp_ms = step.wall_ms
    step.persist(fresh.to_record(step.wall_ms))
    group = find(step.groups, group_id)
    assert group is not None
    group.state_timestamp_ms = step.wall_ms
    return group


def _has_room(group: ClassicGroup, member_id: str, max_size: int) -> bool:
    if group.state is GroupState.EMPTY:
        return True
    member = group.members.get(member_id)
    if group.state is GroupState.PREPARING_REBALANCE:
        # Members that have joined count, so that after the limit was lowered the last to join again are turned away.
        return (member is not None and member.parked_join is not None) or group.parked_joins < max_size
    return member is not None or len(group.members) < max_size


def _turn_away(step: Step, group: ClassicGroup, member_id: str) -> None:
    if member_id in group.members or member_id in group.pending_joins:
        if member_id in group.members:
            group.note_change(Cause.MEMBER_LEFT, left=[member_id], reason="the group is full")
        group.remove(member_id)
        group.end_session(step, member_id)


def offer_of(request: JoinGroupRequest, version: int) -> Offer:
    return Offer(
        request.protocol_type,
        distinct_protocols((protocol.name, protocol.metadata) for protocol in request.protocols),
        request.rebalance_timeout_ms if version >= 1 else request.session_timeout_ms,
        request.session_timeout_ms,
    )


def _fits_in_record(step: Step, group: ClassicGroup, request: JoinGroupRequest, offer: Offer) -> bool:
    instance_id = request.group_instance_id or ""
    replaced = group.members.get(request.member_id or group.static_members.get(instance_id, ""))
    client_id = step.request.client_id
    names = len(request.member_id or instance_id or client_id) + len(instance_id) + len(client_id)
    return group.has_room_for_member(offer, names, replaced)


def _join_without_id(step: Step, group: ClassicGroup, request: JoinGroupRequest, offer: Offer) -> None:
    instance_id = request.group_instance_id
    prefix = step.request.client_id if instance_id is None else instance_id
    member_id = _new_member_id(prefix, step.coordinator.new_id())
    if instance_id is not None:
        if instance_id in group.static_members:
            return static_members.replace(step, group, request, offer, member_id)
        return _add(step, group, request, offer, member_id)
    if step.request.api_version >= 4:
        # KIP-394: a client becomes a member only when it joins with its id, so a lost response leaves no dead member.
        group.pending_joins[member_id] = None
        group.set_session(step, member_id, request.session_timeout_ms)
        return step.reply(join_refused(ErrorCode.MEMBER_ID_REQUIRED, step.request.api_version, member_id))
    return _add(step, group, request, offer, member_id)


def _new_member_id(prefix: str, unique: str) -> str:
    """ "prefix-unique"; the prefix is cut so that a string field can hold the id."""
    suffix = f"-{unique}"
    whole = prefix + suffix
    if len(whole) * UTF8_BYTES <= STRING_BYTES:
        return whole
    return prefix.encode()[: STRING_BYTES - len(suffix.encode())].decode(errors="ignore") + suffix


def _join_with_given_id(step: Step, group: ClassicGroup, request: JoinGroupRequest, offer: Offer) -> None:
    if request.group_instance_id is not None:
        # Only dynamic members are given ids.
        return step.reply(join_refused(ErrorCode.UNKNOWN_SERVER_ERROR, step.request.api_version))
    return _add(step, group, request, offer, request.member_id)


def _join_again(step: Step, group: ClassicGroup, request: JoinGroupRequest, offer: Offer) -> None:
    version = step.request.api_version
    error = group.fence(request.member_id, request.group_instance_id)
    if error:
        return step.reply(join_refused(error, version, request.member_id))
    member = group.members[request.member_id]
    is_leader = member.member_id == group.leader
    has_changed = member.protocols != offer.protocols
    if group.state is GroupState.COMPLETING_REBALANCE and not has_changed:
        # The response to its first join was lost.
        return step.reply(joined(group, member, members_for_leader(group) if is_leader else []))
    if group.state is GroupState.STABLE and not has_changed and not is_leader:
        return step.reply(joined(group, member, []))
    if group.state is not GroupState.PREPARING_REBALANCE:
        # A leader that joins again asks for a rebalance: topics may have changed, which its metadata does not show.
        reason = request.reason or ("" if has_changed else "the leader joined again")
        group.note_change(Cause.SUBSCRIPTION_CHANGED, reason=reason)
    group.update(member, offer)
    # As in Kafka, for a JoinGroup of the same member that is parked already.
    step.never_answer(member.parked_join)
    group.park_join(member, step.park())
    return rebalance.prepare_or_continue(step, group)


def _add(step: Step, group: ClassicGroup, request: JoinGroupRequest, offer: Offer, member_id: str) -> None:
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
        session_renewed_ms=step.now_ms,
    )
    group.add(member, offer.protocol_type)
    group.set_session(step, member_id, NEW_MEMBER_JOIN_TIMEOUT_MS)
    group.note_change(Cause.MEMBER_JOINED, joined=[member_id], reason=request.reason or "")
    rebalance.prepare_or_continue(step, group)
