"""Requests of administrators about groups of any type: ListGroups and DeleteGroups."""

from __future__ import annotations

from typing import Any

from broker.cores.groups.events import Cause, EventType
from broker.cores.groups.group import Group
from broker.cores.groups.records import GroupRemoval, OffsetTombstone
from broker.cores.groups.step import Step
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from broker.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from broker.protocol.wire_types import Gradual

# The offsets of a group with more than this many are removed by one record.
TOMBSTONES_AT_ONCE = 1_000
# A longer list of groups is gradual.
LISTED_AT_ONCE = 1_000


def list_groups(step: Step, request: ListGroupsRequest) -> None:
    states = {state.strip().lower() for state in request.states_filter}
    types = {group_type.strip().lower() for group_type in request.types_filter}
    selected = [
        group
        for group in step.groups.values()
        if (not states or group.state_name.lower() in states) and (not types or group.TYPE in types)
    ]
    groups: Any = Gradual(selected, _listed, LISTED_AT_ONCE)
    is_long = len(selected) > LISTED_AT_ONCE
    step.reply(ListGroupsResponse(groups=groups if is_long else list(groups)), is_gradual=is_long)


def _listed(group: Group) -> ListGroupsResponse.Group:
    return ListGroupsResponse.Group(
        group_id=group.group_id,
        protocol_type=group.protocol_type or "",
        group_state=group.state_name,
        group_type=group.TYPE,
    )


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
    error = group.check_delete()
    if not error:
        delete_group(step, group)
    return error


def delete_group(step: Step, group: Group, reason: str = "") -> None:
    """Remove an Empty group with its offsets, also pending ones, its timers and its generation floor."""
    if not group.offsets_loaded or sum(map(len, group.offsets.values())) > TOMBSTONES_AT_ONCE:
        step.persist(GroupRemoval(group.group_id))
    for topic, partitions in list(group.offsets.items()):
        for partition in list(partitions):
            step.persist(OffsetTombstone(group.group_id, topic, partition, step.wall_ms))
    for removal in step.coordinator.hard.pending.removals_of_group(group.group_id):
        step.persist(removal)
    group.release(step)
    group.cancel_timers(step)
    for record in group.tombstones(step.wall_ms):
        step.persist(record)
    group.pending_event.set_cause(Cause.GROUP_DELETED, reason)
    step.emit(group, EventType.DELETED)
