"""What DescribeGroupDetails reports of a consumer group: its epoch is the generation, its assignor the protocol."""

from __future__ import annotations

from broker.cores.groups.consumer.configs import session_timeout_ms
from broker.cores.groups.consumer.group import ConsumerGroup
from broker.cores.groups.consumer.member import LEFT_STATIC, ConsumerMember, MemberState
from broker.cores.groups.consumer.target import assignor_of
from broker.cores.groups.descriptions import heartbeat_age_ms
from broker.cores.groups.step import Step
from broker.protocol.messages.describe_group_details import DescribeGroupDetailsResponse


def details(step: Step, group: ConsumerGroup) -> DescribeGroupDetailsResponse.Group:
    settings = step.coordinator.settings
    session_ms = session_timeout_ms(step.coordinator, group.group_id)
    return DescribeGroupDetailsResponse.Group(
        group_id=group.group_id,
        group_state=group.state_name,
        protocol_type=group.protocol_type or "",
        protocol=assignor_of(group, settings.group_consumer_assignors),
        generation_id=group.generation,
        state_since_ms=group.notes.state_since_ms,
        members=[
            DescribeGroupDetailsResponse.Member(
                member_id=member.member_id,
                group_instance_id=member.subscription.instance_id,
                client_id=member.subscription.client_id,
                client_host=member.subscription.client_host,
                session_timeout_ms=member.subscription.classic.session_timeout_ms
                if member.subscription.classic is not None
                else session_ms,
                rebalance_timeout_ms=member.subscription.rebalance_timeout_ms,
                heartbeat_age_ms=heartbeat_age_ms(step, group.heartbeats_ms, member.member_id),
                phase=phase_of(group, member),
            )
            for member in group.members.values()
        ],
    )


def phase_of(group: ConsumerGroup, member: ConsumerMember) -> str:
    """How far the member is on the way to its target.

    stable: it has its target. revoking: it has not given up what it was asked to. waiting: others have not given up what it is
    to get. reconciling: it has not confirmed its newest target. away: a static member that is expected back.
    """
    current = member.current
    if current.member_epoch == LEFT_STATIC:
        return "away"
    if current.state == MemberState.UNREVOKED_PARTITIONS:
        return "revoking"
    if current.state == MemberState.UNRELEASED_PARTITIONS:
        return "waiting"
    return "stable" if member.is_reconciled_to(group.assignment_epoch) else "reconciling"
