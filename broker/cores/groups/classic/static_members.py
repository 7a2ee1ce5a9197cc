"""Static membership (KIP-345): a client that returns with its group instance id replaces its old member."""

from __future__ import annotations

from broker.cores.core import BrokenInvariant
from broker.cores.groups.classic import rebalance
from broker.cores.groups.classic.group import ClassicGroup
from broker.cores.groups.classic.member import Member, Offer
from broker.cores.groups.classic.replies import join_refused, joined, members_for_leader, sync_refused
from broker.cores.groups.classic.states import GroupState
from broker.cores.groups.events import Cause, EventType
from broker.cores.groups.step import Step
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.join_group import JoinGroupRequest

_REASON = "static member replaced"


def replace(step: Step, group: ClassicGroup, request: JoinGroupRequest, offer: Offer, member_id: str) -> None:
    """Handle a JoinGroup without a member id whose instance id the group knows; `member_id` is its new id."""
    assert request.group_instance_id is not None
    old = group.members[group.static_members[request.group_instance_id]]
    leader_before = group.leader
    _fence_parked_requests(step, group, old)
    member = group.replace(old, member_id)
    group.update(member, offer)
    group.end_session(step, old.member_id)
    group.restart_session(step, member)
    if group.state is GroupState.STABLE and group.select_protocol() == group.protocol:
        return _continue_without_rebalance(step, group, old, member, leader_before)
    group.park_join(member, step.park())
    if group.state is GroupState.EMPTY:
        raise BrokenInvariant(f"group {group.group_id} is Empty and has the static member {old.member_id}")
    reason = request.reason or _REASON
    group.note_change(Cause.MEMBER_JOINED, joined=[member_id], left=[old.member_id], reason=reason)
    return rebalance.prepare_or_continue(step, group)


def _fence_parked_requests(step: Step, group: ClassicGroup, old: Member) -> None:
    parked_join = group.take_join(old)
    if parked_join is not None:
        step.answer(parked_join, join_refused(ErrorCode.FENCED_INSTANCE_ID, parked_join.api_version, old.member_id))
    if old.parked_sync is not None:
        parked_sync, old.parked_sync = old.parked_sync, None
        step.answer(parked_sync, sync_refused(ErrorCode.FENCED_INSTANCE_ID))


def _continue_without_rebalance(
    step: Step, group: ClassicGroup, old: Member, member: Member, leader_before: str | None
) -> None:
    # The subscriptions of the group stay those of its generation, as in Kafka, even if the member's metadata has changed.
    step.persist(group.to_record(step.wall_ms))
    pending = group.pending_event
    pending.set_cause(Cause.MEMBER_JOINED, _REASON)
    pending.joined.add([member.member_id])
    pending.add_left(Cause.MEMBER_JOINED, _REASON, [old.member_id])
    step.emit(group, EventType.MEMBER_REPLACED)
    is_leader = group.leader == member.member_id
    if step.request.api_version >= 9:
        # KIP-814: the leader gets the members, and skip_assignment asks it to keep the assignment.
        members = members_for_leader(group) if is_leader else []
        return step.reply(joined(group, member, members, skip_assignment=is_leader))
    # An older client that finds itself leader would compute a new assignment, so the response names the old id as leader.
    return step.reply(joined(group, member, [], leader=leader_before))
