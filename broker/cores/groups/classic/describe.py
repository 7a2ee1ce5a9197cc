"""DescribeGroups, and DescribeGroupDetails, which reports what Kafka's response has no fields for."""

from __future__ import annotations

from importlib import import_module

from broker.cores.groups.classic.group import ClassicGroup, find
from broker.cores.groups.classic.member import Member
from broker.cores.groups.classic.states import GroupState
from broker.cores.groups.group import ALL_OPERATIONS
from broker.cores.groups.step import Step
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.describe_group_details import DescribeGroupDetailsRequest, DescribeGroupDetailsResponse
from broker.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse

# The times of more commits than this would take long in one turn; the group is described without them.
MOST_COMMITS = 10_000


def describe_groups(step: Step, request: DescribeGroupsRequest) -> None:
    version = step.request.api_version
    groups = [_describe(step, group_id, version) for group_id in request.groups]
    if request.include_authorized_operations:
        for group in groups:
            if not group.error_code:
                group.authorized_operations = ALL_OPERATIONS
    step.reply(DescribeGroupsResponse(groups=groups))


def _describe(step: Step, group_id: str, version: int) -> DescribeGroupsResponse.Group:
    group = find(step.groups, group_id)
    if group is None:
        is_of_other_type = group_id in step.groups
        message = f"Group {group_id} is not a classic group." if is_of_other_type else _not_found(group_id)
        return _absent(group_id, version, message)
    is_stable = group.state is GroupState.STABLE
    return DescribeGroupsResponse.Group(
        group_id=group_id,
        group_state=group.state_name,
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


def _absent(group_id: str, version: int, message: str) -> DescribeGroupsResponse.Group:
    # KIP-1043: an absent group is an error from version 6 on; before, it is a group in the state Dead.
    is_error = version >= 6
    return DescribeGroupsResponse.Group(
        error_code=ErrorCode.GROUP_ID_NOT_FOUND if is_error else ErrorCode.NONE,
        error_message=message if is_error else None,
        group_id=group_id,
        group_state=GroupState.DEAD.value,
        protocol_type="",
        protocol_data="",
        members=[],
    )


def _not_found(group_id: str) -> str:
    return f"Group {group_id} not found."


def describe_group_details(step: Step, request: DescribeGroupDetailsRequest) -> None:
    groups = [_details(step, group_id) for group_id in request.groups]
    if request.include_commits:
        for answered in groups:
            _add_commits(step, answered)
    step.reply(
        DescribeGroupDetailsResponse(wall_ms=step.wall_ms, started_ms=step.coordinator.started_ms, groups=groups)
    )


def _add_commits(step: Step, answered: DescribeGroupDetailsResponse.Group) -> None:
    group = step.groups.get(answered.group_id)
    offsets = group.offsets if group is not None else {}
    if sum(map(len, offsets.values())) <= MOST_COMMITS:
        answered.commits = [
            DescribeGroupDetailsResponse.Commits(
                topic=topic,
                partitions=list(partitions),
                committed_ms=[record.commit_timestamp_ms for record in partitions.values()],
            )
            for topic, partitions in offsets.items()
        ]
    for topic, waiting in (step.coordinator.hard.pending.of_group(answered.group_id) or {}).items():
        by_producer: dict[int, list[int]] = {}
        for partition, producers in waiting.items():
            for producer_id in producers:
                by_producer.setdefault(producer_id, []).append(partition)
        answered.pending += [
            DescribeGroupDetailsResponse.Pending(topic=topic, producer_id=producer_id, partitions=partitions)
            for producer_id, partitions in by_producer.items()
        ]


def _details(step: Step, group_id: str) -> DescribeGroupDetailsResponse.Group:
    group, now_ms = step.groups.get(group_id), step.now_ms
    if group is not None and not isinstance(group, ClassicGroup):
        described: DescribeGroupDetailsResponse.Group
        described = import_module(f"broker.cores.groups.{group.TYPE}.details").details(step, group)
        return described
    if group is None:
        return DescribeGroupDetailsResponse.Group(
            error_code=ErrorCode.GROUP_ID_NOT_FOUND,
            error_message=_not_found(group_id),
            group_id=group_id,
            group_state=GroupState.DEAD.value,
        )
    return DescribeGroupDetailsResponse.Group(
        group_id=group_id,
        group_state=group.state_name,
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
                heartbeat_age_ms=now_ms - member.session_renewed_ms if member.session_renewed_ms >= 0 else -1,
                phase=phase_of(group, member),
            )
            for member in group.members.values()
        ],
    )


def phase_of(group: ClassicGroup, member: Member) -> str:
    """The member's progress in a rebalance, in words for people."""
    if group.state is GroupState.PREPARING_REBALANCE:
        return "joined" if member.parked_join is not None else "join awaited"
    if member.member_id in group.pending_syncs:
        return "sync awaited"
    return "synced" if group.state is GroupState.COMPLETING_REBALANCE else "stable"
