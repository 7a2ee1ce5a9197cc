"""Expiry: drop offsets that are older than their retention, and groups that have nothing left."""

from __future__ import annotations

from collections.abc import Iterable

from broker.cores.groups.admin import delete_group
from broker.cores.groups.group import Group
from broker.cores.groups.records import OffsetCommitRecord, OffsetTombstone
from broker.cores.groups.step import Step

# The kind of the one timer of the check for expired offsets.
EXPIRY = "expiry"
# How many groups and offsets one step checks, after how many records it ends, and the pause after it, so that requests get
# their turn.
GROUPS_PER_STEP, OFFSETS_PER_STEP, RECORDS_PER_STEP, PAUSE_MS = 500, 5_000, 1_500, 10
# How many offsets of one group are checked together.
PART = 1_000


def schedule_check(step: Step) -> None:
    step.timers.set((EXPIRY,), step.now_ms + step.coordinator.settings.offsets_retention_check_interval_ms)


def check_loaded_groups(step: Step) -> None:
    """Check the next groups whose offsets are in memory."""
    check = step.coordinator.expiry_check
    if not check.group_ids:
        check.group_ids += [group.group_id for group in step.groups.values() if group.offsets_loaded]
    groups, offsets = GROUPS_PER_STEP, OFFSETS_PER_STEP
    while check.group_ids and groups and offsets > 0 and len(step.state_records) < RECORDS_PER_STEP:
        group = step.groups.get(check.group_ids[-1])
        if group is not None and group.offsets_loaded:
            if not check.unchecked:
                check.unchecked = [offset for partitions in group.offsets.values() for offset in partitions.values()]
            part = check.unchecked[-PART:]
            del check.unchecked[-PART:]
            offsets -= len(part)
            drop_expired(step, group, (offset for offset in part if _is_present(group, offset)))
            if check.unchecked:
                continue
            delete_if_abandoned(step, group)
        check.unchecked.clear()
        check.group_ids.pop()
        groups -= 1
    if check.group_ids:
        step.timers.set((EXPIRY,), step.now_ms + PAUSE_MS)
    else:
        schedule_check(step)


def drop_expired(step: Step, group: Group, offsets: Iterable[OffsetCommitRecord]) -> None:
    """Drop those of a group's offsets that have expired."""
    retention_ms = step.coordinator.settings.offsets_retention_minutes * 60_000
    pending = step.coordinator.hard.pending
    expired = [
        offset
        for offset in offsets
        if _has_expired(offset, group.retention_start_ms(offset.commit_timestamp_ms), step.wall_ms, retention_ms)
        and not group.is_subscribed_to(offset.topic)
        and not pending.of_partition(group.group_id, offset.topic, offset.partition)
    ]
    for offset in expired:
        step.persist(OffsetTombstone(group.group_id, offset.topic, offset.partition, step.wall_ms))


def delete_if_abandoned(step: Step, group: Group) -> None:
    """Delete the group if it is Empty and has no offsets left, and no transaction is about to commit any."""
    # Kafka deletes even a group that has just given out an id, and refuses that id a moment later. Ours waits for the id.
    has_pending = step.coordinator.hard.pending.of_group(group.group_id) is not None
    if not group.offsets and not has_pending and group.is_abandoned():
        delete_group(step, group, "no offsets left")


def _is_present(group: Group, offset: OffsetCommitRecord) -> bool:
    return group.offsets.get(offset.topic, {}).get(offset.partition) is offset


def _has_expired(offset: OffsetCommitRecord, start_ms: int | None, wall_ms: int, retention_ms: int) -> bool:
    if start_ms is None:
        return False
    if offset.expire_timestamp_ms is not None:
        return wall_ms >= offset.expire_timestamp_ms
    return wall_ms - start_ms >= retention_ms
