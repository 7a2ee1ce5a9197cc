"""Responses of JoinGroup and SyncGroup, which several phases of a rebalance build."""

from __future__ import annotations

from broker.cores.groups.classic.group import ClassicGroup
from broker.cores.groups.classic.member import Member
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.join_group import JoinGroupResponse
from broker.protocol.messages.sync_group import SyncGroupResponse


def join_refused(error: ErrorCode, api_version: int, member_id: str = "") -> JoinGroupResponse:
    # KIP-559: an absent protocol is null from version 7 on; before, it is empty.
    protocol = None if api_version >= 7 else ""
    return JoinGroupResponse(error_code=error, protocol_name=protocol, leader="", member_id=member_id, members=[])


def joined(
    group: ClassicGroup,
    member: Member,
    members: list[JoinGroupResponse.Member],
    *,
    leader: str | None = None,
    skip_assignment: bool = False,
) -> JoinGroupResponse:
    """The member belongs to the present generation. `leader` overrides the group's leader in the response."""
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=leader if leader is not None else group.leader or "",
        skip_assignment=skip_assignment,
        member_id=member.member_id,
        members=members,
    )


def members_for_leader(group: ClassicGroup) -> list[JoinGroupResponse.Member]:
    return [
        JoinGroupResponse.Member(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            metadata=member.metadata(group.protocol),
        )
        for member in group.members.values()
    ]


def sync_refused(error: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=error, assignment=b"")


def synced(group: ClassicGroup, member: Member) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=member.assignment
    )
