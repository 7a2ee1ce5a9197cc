"""DescribeGroups, ListGroups and DescribeGroupDetails: what a group looks like from outside."""

from __future__ import annotations

from broker.cores.groups.group import Group, GroupState, Member
from broker.cores.groups.step import Step
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.describe_group_details import DescribeGroupDetailsRequest, DescribeGroupDetailsResponse
from broker.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from broker.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse

GROUP_TYPE = "classic"
# KIP-430: read, delete, describe, describe configs and alter configs, as bits; nothing is forbidden here.
ALL_OPERATIONS = sum(1 << operation for operation in (3, 6, 8, 10, 11))


def describe_groups(step: Step, request: DescribeGroupsRequest) -> None:
    version = step.request.api_version
    groups = [_describe(group_id, step.groups.get(group_id), version) for group_id in request.groups]
    if request.include_authorized_operations:
        for group in groups:
            if not group.error_code:
                group.authorized_operations = ALL_OPERATIONS
    step.reply(DescribeGroupsResponse(groups=groups))


def _describe(group_id: str, group: Group | None, version: int) -> DescribeGroupsResponse.Group:
    if group is None:
        return _absent(group_id, version)
    is_stable = group.state is GroupState.STABLE
    return DescribeGroupsResponse.Group(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol or "") if is_stable else "",
        members=[
            DescribeGroupsResponse.Member(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(group.protocol) if is_stable else b"",
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )


def _absent(group_id: str, version: int) -> DescribeGroupsResponse.Group:
    # KIP-1043: from v6 on an absent group is an error, before it is a group in the state Dead.
    is_error = version >= 6
    return DescribeGroupsResponse.Group(
        error_code=ErrorCode.GROUP_ID_NOT_FOUND if is_error else ErrorCode.NONE,
        error_message=_not_found(group_id) if is_error else None,
        group_id=group_id,
        group_state=GroupState.DEAD.value,
        protocol_type="",
        protocol_data="",
        members=[],
    )


def _not_found(group_id: str) -> str:
    return f"Group {group_id} not found."


def list_groups(step: Step, request: ListGroupsRequest) -> None:
    states = {state.strip().lower() for state in request.states_filter}
    types = {group_type.strip().lower() for group_type in request.types_filter}
    groups = [
        ListGroupsResponse.Group(
            group_id=group.group_id,
            protocol_type=group.protocol_type or "",
            group_state=group.state.value,
            group_type=GROUP_TYPE,
        )
        for group in step.groups.values()
        if (not states or group.state.value.lower() in states) and (not types or GROUP_TYPE in types)
    ]
    step.reply(ListGroupsResponse(groups=groups))


def describe_group_details(step: Step, request: DescribeGroupDetailsRequest) -> None:
    step.reply(
        DescribeGroupDetailsResponse(
            groups=[_details(group_id, step.groups.get(group_id), step.now_ms) for group_id in request.groups]
        )
    )


def _details(group_id: str, group: Group | None, now_ms: int) -> DescribeGroupDetailsResponse.Group:
    if group is None:
        return DescribeGroupDetailsResponse.Group(
            error_code=ErrorCode.GROUP_ID_NOT_FOUND,
            error_message=_not_found(group_id),
            group_id=group_id,
            group_state=GroupState.DEAD.value,
        )
    return DescribeGroupDetailsResponse.Group(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol=group.protocol,
        generation_id=group.generation,
        leader=group.leader,
        state_since_ms=group.state_timestamp_ms,
        members=[
            DescribeGroupDetailsResponse.Member(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                session_timeout_ms=member.session_timeout_ms,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                heartbeat_age_ms=now_ms - member.heard_ms if member.heard_ms >= 0 else -1,
                phase=phase_of(group, member),
            )
            for member in group.members.values()
        ],
    )


def phase_of(group: Group, member: Member) -> str:
    """Where the member stands in its group's rebalance, in words for people."""
    if group.state is GroupState.PREPARING_REBALANCE:
        return "joined" if member.parked_join is not None else "join awaited"
    if member.member_id in group.pending_syncs:
        return "sync awaited"
    return "synced" if group.state is GroupState.COMPLETING_REBALANCE else "stable"
