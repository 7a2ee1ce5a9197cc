"""The hard state of consumer groups: what each of their records changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from broker.cores.core import BrokenInvariant
from broker.cores.groups.classic.group import ClassicGroup
from broker.cores.groups.consumer.group import ConsumerGroup
from broker.cores.groups.consumer.member import NO_EPOCH, ConsumerMember, new_member
from broker.cores.groups.hard_state import HardState
from broker.cores.groups.records.consumer import (
    Current,
    CurrentRecord,
    GroupEpochRecord,
    MemberRecord,
    PartitionMetadataTombstone,
    RegexRecord,
    TargetEpochRecord,
    TargetRecord,
)


def apply(hard: HardState, record: Any) -> bool:
    """Apply a record of a consumer group. False: it is not one."""
    applier = _APPLIERS.get(type(record))
    if applier is not None:
        applier(hard, record)
    return applier is not None


def _set_epoch(hard: HardState, record: GroupEpochRecord) -> None:
    if record.epoch is None:
        if _find(hard, record.group_id) is not None:
            hard.remove_group(record.group_id, keeps_offsets=record.keeps_offsets)
        return
    group = _find_or_create(hard, record.group_id)
    group.generation, group.metadata_hash = record.epoch, record.metadata_hash


def _set_member(hard: HardState, record: MemberRecord) -> None:
    if record.subscription is not None:
        group = _find_or_create(hard, record.group_id)
        group.put_member(_member(group, record.member_id)._replace(subscription=record.subscription))
        return
    found = _find(hard, record.group_id)
    if found is not None:
        found.remove_member(record.member_id)


def _set_current(hard: HardState, record: CurrentRecord) -> None:
    if record.current is not None:
        group = _find_or_create(hard, record.group_id)
        group.put_member(_member(group, record.member_id)._replace(current=record.current))
        return
    found = _find(hard, record.group_id)
    if found is not None and record.member_id in found.members:
        member = found.members[record.member_id]
        nothing = Current(NO_EPOCH, NO_EPOCH, member.current.state, {}, {})
        found.put_member(member._replace(current=nothing))


def _set_target(hard: HardState, record: TargetRecord) -> None:
    if record.target is not None:
        _find_or_create(hard, record.group_id).put_target(record.member_id, record.target)
        return
    found = _find(hard, record.group_id)
    if found is not None:
        found.put_target(record.member_id, None)


def _set_target_epoch(hard: HardState, record: TargetEpochRecord) -> None:
    if record.epoch is not None:
        _find_or_create(hard, record.group_id).assignment_epoch = record.epoch
        return
    found = _find(hard, record.group_id)
    if found is not None:
        found.assignment_epoch = NO_EPOCH


def _set_regex(hard: HardState, record: RegexRecord) -> None:
    found = _find(hard, record.group_id)
    if found is None and record.resolved is not None:
        found = _find_or_create(hard, record.group_id)
    if found is not None:
        found.put_regex(record.regex, record.resolved)


_APPLIERS: dict[type[Any], Callable[[HardState, Any], None]] = {
    GroupEpochRecord: _set_epoch,
    PartitionMetadataTombstone: lambda hard, record: None,
    MemberRecord: _set_member,
    CurrentRecord: _set_current,
    TargetRecord: _set_target,
    TargetEpochRecord: _set_target_epoch,
    RegexRecord: _set_regex,
}


def _find(hard: HardState, group_id: str) -> ConsumerGroup | None:
    group = hard.groups.get(group_id)
    return group if isinstance(group, ConsumerGroup) else None


def _find_or_create(hard: HardState, group_id: str) -> ConsumerGroup:
    """A group that has only offsets so far becomes a consumer group."""
    group = hard.groups.get(group_id)
    if isinstance(group, ConsumerGroup):
        return group
    if group is not None and not (isinstance(group, ClassicGroup) and group.metadata is None):
        raise BrokenInvariant(f"group {group_id} is not a consumer group")
    made = ConsumerGroup(group_id, offsets_loaded=not hard.recovering)
    hard.put_group(made, group)
    return made


def _member(group: ConsumerGroup, member_id: str) -> ConsumerMember:
    return group.members.get(member_id) or new_member(member_id)
