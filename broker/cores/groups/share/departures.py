"""How members leave a share group: by a heartbeat, or because they send none."""

from __future__ import annotations

from broker.cores.groups.events import Cause
from broker.cores.groups.metadata_hash import metadata_hash
from broker.cores.groups.records.share import (
    ShareCurrentRecord,
    ShareEpochRecord,
    ShareMemberRecord,
    ShareTargetRecord,
)
from broker.cores.groups.share.changes import note_left, report
from broker.cores.groups.share.group import SESSION, ShareGroup
from broker.cores.groups.share.lookup import existing, unknown_member
from broker.cores.groups.share.member import ShareMember
from broker.cores.groups.step import Step
from broker.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse


def leave(step: Step, request: ShareGroupHeartbeatRequest) -> ShareGroupHeartbeatResponse:
    """Raises Refused."""
    group, member_id = existing(step, request.group_id), request.member_id
    member = group.members.get(member_id)
    if member is None:
        raise unknown_member(group, member_id)
    _remove(step, group, member, Cause.MEMBER_LEFT)
    return ShareGroupHeartbeatResponse(member_id=member_id, member_epoch=request.member_epoch)


def on_session_timeout(step: Step, group_id: str, member_id: str) -> None:
    group = step.groups.get(group_id)
    if isinstance(group, ShareGroup) and member_id in group.members:
        _remove(step, group, group.members[member_id], Cause.SESSION_TIMED_OUT)


def _remove(step: Step, group: ShareGroup, member: ShareMember, cause: Cause) -> None:
    """The next heartbeat of another member computes who gets the partitions."""
    group_id, member_id, generation = group.group_id, member.member_id, group.generation
    hashed = metadata_hash(group.subscriptions_with(None, member), step.coordinator.topics)
    step.timers.cancel((SESSION, group_id, member_id))
    note_left(group, member, cause)
    step.persist(ShareCurrentRecord(group_id, member_id, None, step.wall_ms))
    step.persist(ShareTargetRecord(group_id, member_id, None, step.wall_ms))
    step.persist(ShareMemberRecord(group_id, member_id, None, step.wall_ms))
    step.persist(ShareEpochRecord(group_id, generation + 1, hashed, step.wall_ms))
    group.heartbeats_ms.pop(member_id, None)
    if not group.members:
        group.state_since_ms = step.wall_ms
    report(step, group, generation, has_changed=True)
