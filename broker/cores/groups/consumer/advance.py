"""What heartbeats and the JoinGroups of classic members have in common: the group reacts to a member, and the member to its target."""

from __future__ import annotations

from broker.cores.groups.consumer.changes import note_joined
from broker.cores.groups.consumer.group import ConsumerGroup
from broker.cores.groups.consumer.member import ConsumerMember
from broker.cores.groups.consumer.metadata_hash import metadata_hash
from broker.cores.groups.consumer.reconciliation import Reported, reconciled
from broker.cores.groups.consumer.refusals import Refused
from broker.cores.groups.consumer.target import new_target
from broker.cores.groups.records import StateRecord
from broker.cores.groups.records.consumer import CurrentRecord, GroupEpochRecord
from broker.cores.groups.step import Step
from broker.protocol.errors import ErrorCode


def check_room(step: Step, group: ConsumerGroup, member_id: str) -> None:
    """Raises Refused if the group has no room for another member."""
    limit = step.coordinator.settings.group_consumer_max_size
    if len(group.members) >= limit and member_id not in group.members:
        raise Refused(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {limit} members.",
        )


def advance(
    step: Step,
    group: ConsumerGroup,
    member: ConsumerMember,
    updated: ConsumerMember,
    reported: Reported,
    records: list[StateRecord],
    *,
    is_bumped: bool,
) -> ConsumerMember:
    """`updated`, which takes the place of `member`, after its next step to its target; the same one if it cannot take any.

    The group epoch grows if `is_bumped`, or if topics have changed, and then there is another target for all members. `records` get
    all that changes. Raises Refused.
    """
    group_id, wall_ms = group.group_id, step.wall_ms
    epoch, is_homogeneous = group.generation, group.is_homogeneous()
    if is_bumped or group.seen_version != step.coordinator.topics.version:
        is_homogeneous = group.is_homogeneous_with(updated, member)
        hashed = metadata_hash(group.topics_with(updated, member), step.coordinator.topics)
        if is_bumped or hashed != group.metadata_hash:
            epoch += 1
            records.append(GroupEpochRecord(group_id, epoch, hashed, wall_ms))
    if epoch > group.assignment_epoch:
        assignment_epoch = epoch
        target = new_target(step, group, epoch, member, updated, is_homogeneous=is_homogeneous, records=records)
    else:
        assignment_epoch, target = group.assignment_epoch, group.target_of(updated)
    if updated.is_reconciled_to(assignment_epoch):
        return updated
    advanced = reconciled(updated, target, assignment_epoch, group.owner_epoch, reported)
    if advanced is not updated:
        records.append(CurrentRecord(group_id, updated.member_id, advanced.current, wall_ms))
    return advanced


def store(step: Step, group: ConsumerGroup, member: ConsumerMember, records: list[StateRecord]) -> ConsumerGroup:
    """Persist the records of a request, and note for the next event if the member is new. `group` is as it was before."""
    is_new = member.member_id not in group.members
    replaced = group.static_member(member.subscription.instance_id) if is_new else None
    for record in records:
        step.persist(record)
    stored = step.groups[group.group_id]
    assert isinstance(stored, ConsumerGroup)
    stored.seen_version = step.coordinator.topics.version
    if is_new:
        note_joined(stored, member.member_id, replaced.member_id if replaced is not None else None)
    return stored
