"""A share group after a restart of the broker."""

from __future__ import annotations

from broker.cores.groups.share.configs import session_timeout_ms
from broker.cores.groups.share.group import SESSION, ShareGroup
from broker.cores.groups.step import Step


def resume_group(step: Step, group: ShareGroup) -> None:
    """Give every member a new session."""
    session_ms = session_timeout_ms(step.coordinator, group.group_id)
    for member_id in group.members:
        step.timers.set((SESSION, group.group_id, member_id), step.now_ms + session_ms)
    group.is_rebalancing = bool(group.members) and not group.is_settled()
