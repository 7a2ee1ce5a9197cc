"""SyncGroup and the sync phase: the leader sends the assignment, and the followers wait for theirs."""

from __future__ import annotations

from broker.cores.groups.classic import rebalance
from broker.cores.groups.classic.assignments import assignment_of, partitions_moved
from broker.cores.groups.classic.group import SYNC, ClassicGroup, find, of_timer
from broker.cores.groups.classic.replies import sync_refused, synced
from broker.cores.groups.classic.states import GroupState
from broker.cores.groups.events import Cause, EventType
from broker.cores.groups.step import Step
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.sync_group import SyncGroupRequest


def sync_group(step: Step, request: SyncGroupRequest) -> None:
    group = find(step.groups, request.group_id)
    error = _check(group, request, step.request.api_version)
    if error or group is None:
        step.reply(sync_refused(error))
        return
    member = group.members[request.member_id]
    group.pending_syncs.pop(member.member_id, None)
    if not group.pending_syncs:
        step.timers.cancel((SYNC, group.group_id))
    if group.state is GroupState.STABLE:
        # Kafka's new coordinator does not renew the session here.
        step.reply(synced(group, member))
        return
    # As in Kafka, for a SyncGroup of the same member that is parked already.
    step.never_answer(member.parked_sync)
    member.parked_sync = step.park()
    if member.member_id == group.leader:
        _assign(step, group, request)


def on_sync_timeout(step: Step, group_id: str) -> None:
    """Remove the members that have not synced within the rebalance timeout, and rebalance the others."""
    group = of_timer(step.groups, group_id)
    late = list(group.pending_syncs)
    for member_id in late:
        group.remove(member_id)
        group.end_session(step, member_id)
    group.note_change(Cause.SYNC_TIMED_OUT, left=late)
    rebalance.prepare(step, group)


def check_sync(request: SyncGroupRequest, version: int) -> ErrorCode:
    """What does not depend on the group."""
    if version >= 5 and (request.protocol_type is None or request.protocol_name is None):
        # KIP-559: checked before everything else, the group id included.
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.NONE if request.group_id else ErrorCode.INVALID_GROUP_ID


def _check(group: ClassicGroup | None, request: SyncGroupRequest, version: int) -> ErrorCode:
    error = check_sync(request, version)
    if error:
        return error
    if group is None or group.state is GroupState.EMPTY:
        return ErrorCode.UNKNOWN_MEMBER_ID
    error = group.fence(request.member_id, request.group_instance_id)
    if error:
        return error
    if request.generation_id != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if differs(request.protocol_type, group.protocol_type) or differs(request.protocol_name, group.protocol):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if group.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def differs(requested: str | None, present: str | None) -> bool:
    return requested is not None and present is not None and requested != present


def _assign(step: Step, group: ClassicGroup, request: SyncGroupRequest) -> None:
    assignments = {given.member_id: given.assignment for given in request.assignments}
    if not group.has_room_for_assignments(assignments):
        _refuse_assignments(step, group)
        return
    for member in group.members.values():
        member.assignment = assignments.get(member.member_id, b"")
    group.transition(GroupState.STABLE, step.wall_ms)
    step.emit(group, EventType.STABLE, partitions_moved=partitions_moved(group), assignment=assignment_of(group))
    step.persist(group.to_record(step.wall_ms))
    _answer_parked(step, group)


def _answer_parked(step: Step, group: ClassicGroup, error: ErrorCode = ErrorCode.NONE) -> None:
    for member in group.members.values():
        if member.parked_sync is not None:
            parked, member.parked_sync = member.parked_sync, None
            step.answer(parked, sync_refused(error) if error else synced(group, member))
            group.restart_session(step, member)


def _refuse_assignments(step: Step, group: ClassicGroup) -> None:
    """Assign nothing and start over, as Kafka does when its offsets topic refuses the record."""
    for member in group.members.values():
        member.assignment = b""
    _answer_parked(step, group, ErrorCode.UNKNOWN_SERVER_ERROR)
    group.note_change(Cause.SUBSCRIPTION_CHANGED, reason="the assignments were too large to be stored")
    rebalance.prepare(step, group)
