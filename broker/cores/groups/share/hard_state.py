"""The hard state of share groups: what each of their records changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from broker.cores.core import BrokenInvariant
from broker.cores.groups.hard_state import HardState
from broker.cores.groups.records.share import (
    ShareCurrent,
    ShareCurrentRecord,
    ShareEpochRecord,
    ShareMemberRecord,
    ShareTargetEpochRecord,
    ShareTargetRecord,
    StatePartitionsRecord,
)
from broker.cores.groups.share.group import ShareGroup
from broker.cores.groups.share.member import NO_EPOCH, STABLE, ShareMember, new_member


def apply(hard: HardState, record: Any) -> bool:
    """Apply a record of a share group. False: it is not one."""
    applier = _APPLIERS.get(type(record))
    if applier is not None:
        applier(hard, record)
    return applier is not None


def _set_epoch(hard: HardState, record: ShareEpochRecord) -> None:
    if record.epoch is None:
        if _find(hard, record.group_id) is not None:
            hard.remove_group(record.group_id, keeps_offsets=False)
        return
    group = _find_or_create(hard, record.group_id)
    group.generation, group.metadata_hash = record.epoch, record.metadata_hash


def _set_member(hard: HardState, record: ShareMemberRecord) -> None:
    if record.subscription is not None:
        group = _find_or_create(hard, record.group_id)
        group.put_member(_member(group, record.member_id)._replace(subscription=record.subscription))
        return
    found = _find(hard, record.group_id)
    if found is not None:
        found.remove_member(record.member_id)


def _set_current(hard: HardState, record: ShareCurrentRecord) -> None:
    if record.current is not None:
        group = _find_or_create(hard, record.group_id)
        group.put_member(_member(group, record.member_id)._replace(current=record.current))
        return
    found = _find(hard, record.group_id)
    if found is not None and record.member_id in found.members:
        nothing = ShareCurrent(NO_EPOCH, NO_EPOCH, STABLE, {})
        found.put_member(found.members[record.member_id]._replace(current=nothing))


def _set_target(hard: HardState, record: ShareTargetRecord) -> None:
    found = _find(hard, record.group_id) if record.target is None else _find_or_create(hard, record.group_id)
    if found is not None:
        found.put_target(record.member_id, record.target)


def _set_target_epoch(hard: HardState, record: ShareTargetEpochRecord) -> None:
    found = _find(hard, record.group_id) if record.epoch is None else _find_or_create(hard, record.group_id)
    if found is not None:
        found.assignment_epoch = NO_EPOCH if record.epoch is None else record.epoch


def _set_partitions(hard: HardState, record: StatePartitionsRecord) -> None:
    found = _find(hard, record.group_id) if record.partitions is None else _find_or_create(hard, record.group_id)
    if found is not None:
        found.put_partitions(record.partitions)


_APPLIERS: dict[type[Any], Callable[[HardState, Any], None]] = {
    ShareEpochRecord: _set_epoch,
    ShareMemberRecord: _set_member,
    ShareCurrentRecord: _set_current,
    ShareTargetRecord: _set_target,
    ShareTargetEpochRecord: _set_target_epoch,
    StatePartitionsRecord: _set_partitions,
}


def _find(hard: HardState, group_id: str) -> ShareGroup | None:
    group = hard.groups.get(group_id)
    return group if isinstance(group, ShareGroup) else None


def _find_or_create(hard: HardState, group_id: str) -> ShareGroup:
    group = hard.groups.get(group_id)
    if group is None:
        made = ShareGroup(group_id, offsets_loaded=True)
        hard.put_group(made, None)
        return made
    if not isinstance(group, ShareGroup):
        raise BrokenInvariant(f"group {group_id} is not a share group")
    return group


def _member(group: ShareGroup, member_id: str) -> ShareMember:
    return group.members.get(member_id) or new_member(member_id)
