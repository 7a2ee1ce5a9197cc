"""Compares the assignments of a group: who owns which partition, and how many partitions moved."""

from __future__ import annotations

from kgctl.model.groups import REBALANCING, GroupDescription, by_topic
from kgctl.model.topic_partition import TopicPartition
from kgctl.model.watched import Assignment


def assignment_of(group: GroupDescription) -> Assignment | None:
    """The assignment by member id, empty for an Empty group; None if the group is not Stable or an assignment is unreadable."""
    if group.state == "Empty":
        return {}
    if group.state != "Stable":
        return None
    found = {member.consumer_id or "": member.current_assignment for member in group.members}
    known = {member_id: owned for member_id, owned in found.items() if owned is not None}
    return known if len(known) == len(found) else None


def target_of(group: GroupDescription) -> Assignment | None:
    """The target of each member of a consumer group (KIP-848) that has not reached it; None for other groups."""
    found = {member.consumer_id or "": member.target_assignment for member in group.members}
    known = {member_id: target for member_id, target in found.items() if target is not None}
    return known if group.state in REBALANCING and known and len(known) == len(found) else None


def held_in(group: GroupDescription) -> Assignment:
    """What each member of a consumer group has, with what it has not given up yet."""
    return {
        member.consumer_id or "": by_topic(
            [*member.owned(), *(place for entry in member.revoking or () for place in entry.places())]
        )
        for member in group.members
    }


def owners(assignment: Assignment) -> dict[TopicPartition, str]:
    """The member id of each partition that has an owner."""
    return {
        TopicPartition(entry.topic, number): member_id
        for member_id, owned in assignment.items()
        for entry in owned
        for number in entry.partitions
    }


def partitions_moved(before: Assignment | None, after: Assignment | None) -> int | None:
    """How many of the partitions that had an owner have another owner, or none. None if an assignment is not known."""
    if before is None or after is None:
        return None
    now = owners(after)
    return sum(now.get(partition) != owner for partition, owner in owners(before).items())
