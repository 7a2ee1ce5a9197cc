"""Expiry: drop offsets that are older than their retention, and groups that have nothing left."""

from __future__ import annotations

from broker.cores.groups.admin import delete_group
from broker.cores.groups.group import Group
from broker.cores.groups.records import OffsetCommitRecord, OffsetTombstone
from broker.cores.groups.step import Step

# The kind of the one timer of the check for expired offsets.
EXPIRY = "expiry"
# How many groups one step checks, and the pause after it, so that requests get their turn.
GROUPS_PER_STEP, PAUSE_MS = 500, 10


def schedule_check(step: Step) -> None:
    step.timers.set((EXPIRY,), step.now_ms + step.coordinator.settings.offsets_retention_check_interval_ms)


def check_loaded_groups(step: Step) -> None:
    """Check the next groups whose offsets are in memory."""
    queue = step.coordinator.expiry_queue
    if not queue:
        queue.extend(group.group_id for group in step.groups.values() if group.offsets_loaded)
    for group_id in queue[-GROUPS_PER_STEP:]:
        group = step.groups.get(group_id)
        if group is not None and group.offsets_loaded:
            expire_offsets(step, group)
    del queue[-GROUPS_PER_STEP:]
    if queue:
        step.timers.set((EXPIRY,), step.now_ms + PAUSE_MS)
    else:
        schedule_check(step)


def expire_offsets(step: Step, group: Group) -> None:
    """Drop the group's expired offsets, and the group itself if it is Empty and has none left."""
    if group.offsets and not _drop_expired(step, group):
        return
    # Kafka deletes even a group that has just given out an id, and refuses that id a moment later. Ours waits for the id.
    if group.is_abandoned():
        delete_group(step, group, "no offsets left")


def _drop_expired(step: Step, group: Group) -> bool:
    """Drop the expired offsets. True if none are left."""
    retention_ms = step.coordinator.settings.offsets_retention_minutes * 60_000
    expired = [
        offset
        for topic, partitions in group.offsets.items()
        if not group.is_subscribed_to(topic)
        for offset in partitions.values()
        if _has_expired(offset, group.retention_start_ms(offset.commit_timestamp_ms), step.wall_ms, retention_ms)
    ]
    for offset in expired:
        step.persist(OffsetTombstone(group.group_id, offset.topic, offset.partition, step.wall_ms))
    return not group.offsets


def _has_expired(offset: OffsetCommitRecord, start_ms: int | None, wall_ms: int, retention_ms: int) -> bool:
    if start_ms is None:
        return False
    if offset.expire_timestamp_ms is not None:
        return wall_ms >= offset.expire_timestamp_ms
    return wall_ms - start_ms >= retention_ms
