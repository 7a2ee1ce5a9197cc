"""A classic group after a restart of the broker."""

from __future__ import annotations

from broker.cores.groups.classic import rebalance
from broker.cores.groups.classic.group import ClassicGroup
from broker.cores.groups.events import Cause
from broker.cores.groups.step import Step


def resume_group(step: Step, group: ClassicGroup) -> None:
    """Restore the group, start its members' sessions, and rebalance it if it has more members than is allowed now."""
    group.restore()
    for member in group.members.values():
        group.set_session(step, member.member_id, member.session_timeout_ms)
    if len(group.members) > step.coordinator.settings.group_max_size:
        group.note_change(Cause.MEMBER_LEFT, reason="there are more members than group.max.size allows now")
        rebalance.prepare(step, group)
