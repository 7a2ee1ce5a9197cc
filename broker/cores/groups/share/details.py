"""What DescribeGroupDetails reports of a share group: its epoch is the generation, its assignor the protocol."""

from __future__ import annotations

from broker.cores.groups.assignors.simple import SimpleAssignor
from broker.cores.groups.descriptions import heartbeat_age_ms
from broker.cores.groups.share.configs import session_timeout_ms
from broker.cores.groups.share.group import ShareGroup
from broker.cores.groups.share.member import ShareMember
from broker.cores.groups.step import Step
from broker.protocol.messages.describe_group_details import DescribeGroupDetailsResponse


def details(step: Step, group: ShareGroup) -> DescribeGroupDetailsResponse.Group:
    """Members give nothing up, so there is no rebalance timeout: -1."""
    session_ms = session_timeout_ms(step.coordinator, group.group_id)
    return DescribeGroupDetailsResponse.Group(
        group_id=group.group_id,
        group_state=group.state_name,
        protocol_type=group.protocol_type or "",
        protocol=SimpleAssignor.name,
        generation_id=group.generation,
        state_since_ms=group.state_since_ms,
        members=[
            DescribeGroupDetailsResponse.Member(
                member_id=member.member_id,
                client_id=member.subscription.client_id,
                client_host=member.subscription.client_host,
                session_timeout_ms=session_ms,
                rebalance_timeout_ms=-1,
                heartbeat_age_ms=heartbeat_age_ms(step, group.heartbeats_ms, member.member_id),
                phase=_phase_of(group, member),
            )
            for member in group.members.values()
        ],
    )


def _phase_of(group: ShareGroup, member: ShareMember) -> str:
    """stable: it has its target. reconciling: its next heartbeat brings another one."""
    return "stable" if member.current.member_epoch == group.generation == group.assignment_epoch else "reconciling"
