"""Compares the assignments of a group: who owns which partition, and how many partitions moved."""

from __future__ import annotations

from kgctl.model.groups import GroupDescription
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
