"""The answers of JoinGroup and SyncGroup, which are built in more than one phase of a rebalance."""

from __future__ import annotations

from broker.cores.groups.group import Group, Member
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.join_group import JoinGroupResponse
from broker.protocol.messages.sync_group import SyncGroupResponse


def join_refused(error: ErrorCode, api_version: int, member_id: str = "") -> JoinGroupResponse:
    # From v7 on a missing protocol is null, before it is empty (KIP-559).
    protocol = None if api_version >= 7 else ""
    return JoinGroupResponse(error_code=error, protocol_name=protocol, leader="", member_id=member_id, members=[])


def joined(
    group: Group,
    member: Member,
    members: list[JoinGroupResponse.Member],
    *,
    leader: str | None = None,
    skip_assignment: bool = False,
) -> JoinGroupResponse:
    """The member is part of the present generation; `leader` where it is to be told another one than the group has."""
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=leader if leader is not None else group.leader or "",
        skip_assignment=skip_assignment,
        member_id=member.member_id,
        members=members,
    )


def members_for_leader(group: Group) -> list[JoinGroupResponse.Member]:
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


def synced(group: Group, member: Member) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=member.assignment
    )
