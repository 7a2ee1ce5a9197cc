"""A consumer group after a restart of the broker."""

from __future__ import annotations

from broker.cores.groups.consumer.configs import session_timeout_ms
from broker.cores.groups.consumer.group import REBALANCE, SESSION, ConsumerGroup
from broker.cores.groups.consumer.member import MemberState
from broker.cores.groups.step import Step


def resume_group(step: Step, group: ConsumerGroup) -> None:
    """Give every member a new session, and a new rebalance timeout to those that have partitions to give up."""
    session_ms = session_timeout_ms(step.coordinator, group.group_id)
    for member_id, member in group.members.items():
        step.timers.set((SESSION, group.group_id, member_id), step.now_ms + session_ms)
        if member.current.state == MemberState.UNREVOKED_PARTITIONS:
            group.revoking[member_id] = member.current.member_epoch
            timeout_ms = max(member.subscription.rebalance_timeout_ms, 0)
            step.timers.set((REBALANCE, group.group_id, member_id), step.now_ms + timeout_ms)
    group.notes.state = group.state_name
    group.is_rebalancing = bool(group.members) and group.state_name != "Stable"
