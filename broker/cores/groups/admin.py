"""DeleteGroups, and the offsets of a topic that is deleted."""

from __future__ import annotations

from broker.cores.groups.group import GroupState
from broker.cores.groups.offsets import delete_group
from broker.cores.groups.records import OffsetTombstone
from broker.cores.groups.step import Step
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse


def delete_groups(step: Step, request: DeleteGroupsRequest) -> None:
    results = [
        DeleteGroupsResponse.Result(group_id=group_id, error_code=_delete(step, group_id))
        for group_id in dict.fromkeys(request.groups_names)
    ]
    step.reply(DeleteGroupsResponse(results=results))


def _delete(step: Step, group_id: str) -> ErrorCode:
    group = step.groups.get(group_id)
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND
    if group.state is not GroupState.EMPTY:
        return ErrorCode.NON_EMPTY_GROUP
    delete_group(step, group)
    return ErrorCode.NONE


def delete_topic_offsets(step: Step, topic: str) -> None:
    """Drop the offsets of a deleted topic in every group whose offsets are loaded."""
    for group in step.groups.values():
        for partition in list(group.offsets.get(topic, ())):
            step.persist(OffsetTombstone(group.group_id, topic, partition, step.wall_ms))
