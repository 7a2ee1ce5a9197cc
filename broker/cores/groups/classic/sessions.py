"""Members after they have joined: Heartbeat, LeaveGroup and the session timeout."""

from __future__ import annotations

from broker.cores.groups.classic import rebalance
from broker.cores.groups.classic.group import ClassicGroup, find, of_timer
from broker.cores.groups.classic.member import Member
from broker.cores.groups.classic.replies import join_refused
from broker.cores.groups.classic.states import GroupState
from broker.cores.groups.events import Cause
from broker.cores.groups.step import Step
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from broker.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse

# How the reason starts that Kafka's AdminClient gives when it removes members.
_ADMIN_REASON = "member was removed by an admin"
_PENDING_REASON = "a client left that had a member id but had not joined"


def heartbeat(step: Step, request: HeartbeatRequest) -> None:
    step.reply(HeartbeatResponse(error_code=_heartbeat(step, request)))


def _heartbeat(step: Step, request: HeartbeatRequest) -> ErrorCode:
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    group = find(step.groups, request.group_id)
    if group is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    error = group.fence(request.member_id, request.group_instance_id)
    if error:
        return error
    if request.generation_id != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    group.restart_session(step, group.members[request.member_id])
    if group.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def leave_group(step: Step, request: LeaveGroupRequest) -> None:
    if not request.group_id:
        return step.reply(LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID))
    group = find(step.groups, request.group_id)
    return reply_left(step, request, _leave(step, group, leaving_members(step, request)))


def leaving_members(step: Step, request: LeaveGroupRequest) -> list[LeaveGroupRequest.Member]:
    if step.request.api_version <= 2:
        return [LeaveGroupRequest.Member(member_id=request.member_id)]
    return request.members


def reply_left(step: Step, request: LeaveGroupRequest, errors: list[ErrorCode]) -> None:
    """Answer with the error of each leaving member."""
    if step.request.api_version <= 2:
        return step.reply(LeaveGroupResponse(error_code=errors[0]))
    return step.reply(
        LeaveGroupResponse(
            members=[
                LeaveGroupResponse.Member(
                    member_id=leaving.member_id, group_instance_id=leaving.group_instance_id, error_code=error
                )
                for leaving, error in zip(request.members, errors, strict=True)
            ]
        )
    )


def _leave(step: Step, group: ClassicGroup | None, members: list[LeaveGroupRequest.Member]) -> list[ErrorCode]:
    if group is None:
        return [ErrorCode.UNKNOWN_MEMBER_ID] * len(members)
    members_before = len(group.members)
    errors = [_leave_one(step, group, leaving) for leaving in members]
    if ErrorCode.NONE in errors and group.state is not GroupState.EMPTY:
        if len(group.members) == members_before:
            # As in Kafka, clients that never became members start a rebalance, too.
            group.note_change(Cause.MEMBER_LEFT, reason=_PENDING_REASON)
        rebalance.prepare_or_continue(step, group)
    return errors


def _leave_one(step: Step, group: ClassicGroup, leaving: LeaveGroupRequest.Member) -> ErrorCode:
    member_id, instance_id = leaving.member_id, leaving.group_instance_id
    if not member_id:
        if instance_id is None or instance_id not in group.static_members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        member = group.members[group.static_members[instance_id]]
        _remove(step, group, member, cause_of(leaving), leaving.reason)
        return ErrorCode.NONE
    if member_id in group.pending_joins:
        group.remove(member_id)
        group.end_session(step, member_id)
        return ErrorCode.NONE
    error = group.fence(member_id, instance_id)
    if error:
        return error
    _remove(step, group, group.members[member_id], cause_of(leaving), leaving.reason)
    return ErrorCode.NONE


def cause_of(leaving: LeaveGroupRequest.Member) -> Cause:
    """Only an admin names a static member by its instance id alone; for others the reason says whether it is one."""
    is_by_admin = not leaving.member_id or (leaving.reason or "").startswith(_ADMIN_REASON)
    return Cause.REQUESTED_BY_ADMIN if is_by_admin else Cause.MEMBER_LEFT


def on_session_timeout(step: Step, group_id: str, member_id: str) -> None:
    group = of_timer(step.groups, group_id)
    if member_id in group.pending_joins:
        group.remove(member_id)
    else:
        member = group.members[member_id]
        if member.is_parked() and not member.is_new:
            # A parked request proves that the client is alive; Kafka does not expire it either.
            group.restart_session(step, member)
            return
        _remove(step, group, member, Cause.SESSION_TIMED_OUT, None)
        if group.can_rebalance():
            rebalance.prepare(step, group)
            return
    # As in Kafka, this may end even the initial delay, unlike `rebalance.complete_if_all_joined`.
    if group.state is GroupState.PREPARING_REBALANCE and group.all_joined():
        rebalance.complete(step, group)


def _remove(step: Step, group: ClassicGroup, member: Member, cause: Cause, reason: str | None) -> None:
    parked = group.take_join(member)
    if parked is not None:
        step.answer(parked, join_refused(ErrorCode.UNKNOWN_MEMBER_ID, parked.api_version))
    # As in Kafka.
    step.never_answer(member.parked_sync)
    group.remove(member.member_id)
    group.end_session(step, member.member_id)
    group.note_change(cause, left=[member.member_id], reason=reason or "")
