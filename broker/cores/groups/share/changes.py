"""The events of a share group: a rebalance starts with a group epoch that changes something, and ends when all members have its target."""

from __future__ import annotations

from broker.cores.groups.assignments import assignment_of
from broker.cores.groups.events import Cause, EventType
from broker.cores.groups.share.group import ShareGroup
from broker.cores.groups.share.member import ShareMember
from broker.cores.groups.step import Step


def note_joined(group: ShareGroup, member: ShareMember) -> None:
    group.pending_event.joined.add([member.member_id])
    _note_client(group, member)
    group.pending_event.set_cause(Cause.MEMBER_JOINED, "")


def note_left(group: ShareGroup, member: ShareMember, cause: Cause) -> None:
    group.pending_event.add_left(cause, "", [member.member_id])
    _note_client(group, member)
    group.pending_event.set_cause(cause, "")


def _note_client(group: ShareGroup, member: ShareMember) -> None:
    subscription = member.subscription
    group.pending_event.add_client(member.member_id, subscription.client_id, subscription.client_host)


def report(
    step: Step,
    group: ShareGroup,
    generation: int,
    *,
    has_changed: bool,
    cause: Cause | None = None,
    reason: str = "",
) -> None:
    """Emit the events of a step, before which the group epoch was `generation`.

    `has_changed`: members, subscriptions or targets have; other epochs are not reported. `cause` and `reason` are those of the
    epoch; None if they are noted, as a member has joined or left.
    """
    if not group.members:
        if group.generation != generation:
            group.owners_reported, group.is_rebalancing = {}, False
            step.emit(group, EventType.EMPTY)
        return
    if not generation:
        group.owners_reported = {}
    if group.generation != generation and has_changed:
        pending = group.pending_event
        if cause is not None:
            pending.set_cause(cause, reason)
        if pending.prepare_started_ms is None:
            pending.prepare_started_ms = step.now_ms
        group.is_rebalancing = True
        step.emit(group, EventType.REBALANCE_STARTED)
    if group.is_rebalancing and group.is_settled():
        group.is_rebalancing = False
        moved, group.owners_reported = _moved(group)
        owned = {member.member_id: member.current.assigned for member in group.members.values()}
        assignment = assignment_of(owned, step.coordinator.topics)
        step.emit(group, EventType.STABLE, partitions_moved=moved, assignment=assignment)


def _moved(group: ShareGroup) -> tuple[int | None, dict[tuple[bytes, int], frozenset[str]]]:
    """How many partitions have other members than when the group was last stable, or none; and who has what now.

    None: this process has not seen the group stable before.
    """
    owners: dict[tuple[bytes, int], frozenset[str]] = {}
    for member in group.members.values():
        for topic_id, partitions in member.current.assigned.items():
            for partition in partitions:
                place = topic_id, partition
                owners[place] = owners.get(place, frozenset()) | {member.member_id}
    before = group.owners_reported
    moved = None if before is None else sum(owners.get(place) != owned for place, owned in before.items())
    return moved, owners
