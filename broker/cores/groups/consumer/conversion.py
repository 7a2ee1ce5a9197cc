"""Which group a heartbeat is for: it is found, made, or takes the place of a classic one."""

from __future__ import annotations

from broker.cores.groups.classic.group import ClassicGroup
from broker.cores.groups.classic.states import GroupState
from broker.cores.groups.consumer.group import ConsumerGroup
from broker.cores.groups.consumer.upgrade import upgraded
from broker.cores.groups.records import StateRecord
from broker.cores.groups.refusals import Refused
from broker.cores.groups.step import Step
from broker.protocol.errors import ErrorCode


def find_or_make(step: Step, group_id: str, records: list[StateRecord], *, is_joining: bool) -> ConsumerGroup:
    """The group as it is before this heartbeat. One that does not exist yet is made by the records of the heartbeat. Raises Refused."""
    group = step.groups.get(group_id)
    if isinstance(group, ConsumerGroup):
        return group
    if group is None:
        if not is_joining:
            raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
        return ConsumerGroup(group_id, offsets_loaded=True)
    if not is_joining or not isinstance(group, ClassicGroup):
        raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
    if group.state is not GroupState.EMPTY:
        return upgraded(step, group, records)
    records += group.tombstones(step.wall_ms, keeps_offsets=True)
    return ConsumerGroup(group_id, offsets_loaded=group.offsets_loaded)


def existing(step: Step, group_id: str) -> ConsumerGroup:
    """The group of a member that leaves. Raises Refused."""
    group = step.groups.get(group_id)
    if group is None:
        raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    if not isinstance(group, ConsumerGroup):
        raise Refused(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
    return group
