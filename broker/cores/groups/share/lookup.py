"""Share groups and their members by id, with Kafka's errors."""

from __future__ import annotations

from broker.cores.groups.refusals import Refused
from broker.cores.groups.share.group import ShareGroup
from broker.cores.groups.step import Step
from broker.protocol.errors import ErrorCode


def existing(step: Step, group_id: str) -> ShareGroup:
    """Raises Refused if there is no such share group."""
    group = step.groups.get(group_id)
    if not isinstance(group, ShareGroup):
        problem = "not found" if group is None else "is not a share group"
        raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {problem}.")
    return group


def empty(step: Step, group_id: str) -> ShareGroup:
    """Raises Refused if there is no such share group, or it has members."""
    group = existing(step, group_id)
    if group.members:
        raise Refused(ErrorCode.NON_EMPTY_GROUP, "The group is not empty.")
    return group


def unknown_member(group: ShareGroup, member_id: str) -> Refused:
    return Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.group_id}.")
