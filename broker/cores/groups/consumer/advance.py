"""What heartbeats and the JoinGroups of classic members have in common: the group reacts to a member, and the member to its target."""

from __future__ import annotations

from broker.cores.groups.consumer.changes import note_joined, note_topics
from broker.cores.groups.consumer.group import ConsumerGroup
from broker.cores.groups.consumer.member import ConsumerMember
from broker.cores.groups.consumer.reconciliation import Reported, reconciled
from broker.cores.groups.consumer.target import new_target
from broker.cores.groups.metadata_hash import metadata_hash
from broker.cores.groups.records import StateRecord
from broker.cores.groups.records.consumer import CurrentRecord, GroupEpochRecord
from broker.cores.groups.refusals import Refused
from broker.cores.groups.step import Step
from broker.cores.groups.topics import TopicCatalog
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
    epoch, is_homogeneous, topics = group.generation, group.is_homogeneous(), step.coordinator.topics
    is_outdated = is_bumped or _have_changed(group, topics)
    seen = group.seen
    if is_outdated or updated.subscription.topic_regex != member.subscription.topic_regex:
        hashed = metadata_hash(group.topics_with(updated, member), topics)
        seen = topics.version, hashed
        if is_bumped or (is_outdated and hashed != group.metadata_hash):
            epoch += 1
            if not is_bumped:
                note_topics(group)
            records.append(GroupEpochRecord(group_id, epoch, hashed, wall_ms))
    if is_outdated:
        is_homogeneous = group.is_homogeneous_with(updated, member)
    if epoch > group.assignment_epoch:
        assignment_epoch = epoch
        target = new_target(step, group, epoch, member, updated, is_homogeneous=is_homogeneous, records=records)
    else:
        assignment_epoch, target = group.assignment_epoch, group.target_of(updated)
    advanced = updated
    if not updated.is_reconciled_to(assignment_epoch):
        advanced = reconciled(updated, target, assignment_epoch, group.owner_epoch, reported)
    group.seen = seen
    if advanced is not updated:
        records.append(CurrentRecord(group_id, updated.member_id, advanced.current, wall_ms))
    return advanced


def _have_changed(group: ConsumerGroup, topics: TopicCatalog) -> bool:
    """Whether any subscribed topic has. A topic that is no longer subscribed, as it matched a former regular expression, does not count."""
    if group.seen is None:
        return True
    version, hashed = group.seen
    if version != topics.version and metadata_hash(group.subscribed_topics(), topics) == hashed:
        group.seen = topics.version, hashed
    return group.seen[0] != topics.version


def store(step: Step, group: ConsumerGroup, member: ConsumerMember, records: list[StateRecord]) -> ConsumerGroup:
    """Persist the records of a request, and note for the next event if the member is new. `group` is as it was before."""
    is_new = member.member_id not in group.members
    replaced = group.static_member(member.subscription.instance_id) if is_new else None
    for record in records:
        step.persist(record)
    stored = step.groups[group.group_id]
    assert isinstance(stored, ConsumerGroup)
    stored.seen = group.seen
    stored.notes.fenced.discard(member.member_id)
    if is_new:
        note_joined(stored, stored.members[member.member_id], replaced)
    return stored
