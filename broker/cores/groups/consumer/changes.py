"""The events of a consumer group: a rebalance starts with each group epoch, and ends when all members have reached their targets."""

from __future__ import annotations

from broker.cores.groups.assignments import assignment_of
from broker.cores.groups.consumer.event_notes import seen_topics, topic_changes
from broker.cores.groups.consumer.group import ConsumerGroup
from broker.cores.groups.consumer.member import ConsumerMember
from broker.cores.groups.events import (
    REASON_CHARACTERS,
    Cause,
    EventType,
    GroupEvent,
    MemberClient,
)
from broker.cores.groups.step import Step

_TAKEN_OVER = "static member replaced"


def note_joined(group: ConsumerGroup, member: ConsumerMember, replaced: ConsumerMember | None) -> None:
    """A member is new, or has taken the place of another id of the same static member."""
    pending = group.pending_event
    pending.joined.add([member.member_id])
    _note_client(group, member)
    if replaced is not None:
        pending.add_left(Cause.MEMBER_JOINED, _TAKEN_OVER, [replaced.member_id])
        _note_client(group, replaced)
        group.was_replaced = True
    note_cause(group, Cause.MEMBER_JOINED, _TAKEN_OVER if replaced is not None else "")


def note_left(group: ConsumerGroup, member: ConsumerMember, cause: Cause, reason: str = "") -> None:
    group.pending_event.add_left(cause, reason, [member.member_id])
    _note_client(group, member)
    note_cause(group, cause, reason)


def _note_client(group: ConsumerGroup, member: ConsumerMember) -> None:
    subscription = member.subscription
    group.pending_event.add_client(member.member_id, subscription.client_id, subscription.client_host)


def note_cause(group: ConsumerGroup, cause: Cause, reason: str) -> None:
    """Why the group epoch grows in this step."""
    group.pending_event.set_cause(cause, reason)
    group.notes.has_cause = True


def note_topics(group: ConsumerGroup) -> None:
    """The topics are no longer those of the present epoch; unless the epoch grows for another cause, it grows for this one."""
    group.notes.has_topic_change = True


def report_fenced(step: Step, group: ConsumerGroup, member_id: str, reason: str) -> None:
    """Emit an event about a member that sends an epoch of the past or of the future: once, until a heartbeat of it is valid."""
    if member_id in group.members and member_id not in group.notes.fenced:
        group.notes.fenced.add(member_id)
        reason = reason[:REASON_CHARACTERS]
        kind, members = EventType.MEMBER_FENCED, group.member_count
        client = group.members[member_id].subscription
        clients = {member_id: MemberClient(client.client_id, client.client_host)}
        event = GroupEvent(group.group_id, kind, None, reason, group.generation, step.wall_ms, members)
        step.events.append(event._replace(group_type=group.TYPE, clients=clients))


def report(step: Step, group: ConsumerGroup, generation: int) -> None:
    """Emit the events of a step, before which the group epoch was `generation`."""
    _report(step, group, generation)
    notes, state = group.notes, group.state_name
    notes.has_cause = False
    if state != notes.state:
        notes.state, notes.state_since_ms = state, step.wall_ms


def _report(step: Step, group: ConsumerGroup, generation: int) -> None:
    if not group.members:
        if group.generation != generation:
            group.owners_reported = {}
            group.is_rebalancing = False
            step.emit(group, EventType.EMPTY)
        return
    if not generation:
        group.owners_reported = {}
    if group.generation != generation:
        _set_cause(step, group)
        group.notes.started_by = group.pending_event.cause, group.pending_event.reason
        if group.pending_event.prepare_started_ms is None:
            group.pending_event.prepare_started_ms = step.now_ms
        group.is_rebalancing = True
        step.emit(group, EventType.REBALANCE_STARTED)
    elif group.is_rebalancing and group.notes.has_cause and group.notes.started_by is not None:
        # A static member that takes its place again during a rebalance does not begin it.
        group.pending_event.cause, group.pending_event.reason = group.notes.started_by
    if group.is_rebalancing:
        if group.state_name == "Stable":
            group.is_rebalancing = group.was_replaced = False
            moved, group.owners_reported = _moved(group)
            owned = {member.member_id: member.current.assigned for member in group.members.values()}
            assignment = assignment_of(owned, step.coordinator.topics)
            step.emit(group, EventType.STABLE, partitions_moved=moved, assignment=assignment)
    elif group.was_replaced:
        group.was_replaced = False
        step.emit(group, EventType.MEMBER_REPLACED)


def _set_cause(step: Step, group: ConsumerGroup) -> None:
    notes = group.notes
    topics = seen_topics(group.subscribed_topics(), step.coordinator.topics)
    if not notes.has_cause and notes.has_topic_change:
        group.pending_event.set_cause(Cause.TOPICS_CHANGED, topic_changes(notes.topics, topics))
    elif not notes.has_cause:
        group.pending_event.set_cause(Cause.SUBSCRIPTION_CHANGED, "")
    notes.topics, notes.has_topic_change = topics, False


def _moved(group: ConsumerGroup) -> tuple[int | None, dict[tuple[bytes, int], str]]:
    """How many partitions have another owner than when the group was last stable, or none; and who owns what now.

    A static member is the same owner under every member id. None: this process has not seen the group stable before.
    """
    owners, before = owners_in(group), group.owners_reported
    moved = None if before is None else sum(owners.get(place) != owner for place, owner in before.items())
    return moved, owners


def owners_in(group: ConsumerGroup) -> dict[tuple[bytes, int], str]:
    """The owner of each partition by topic id and number: an instance id, or else a member id."""
    return {
        (topic_id, partition): member.subscription.instance_id or member.member_id
        for member in group.members.values()
        for topic_id, partitions in member.current.assigned.items()
        for partition in partitions
    }
