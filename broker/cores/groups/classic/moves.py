"""How many partitions change hands between two generations of a consumer group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from broker.cores.groups.group import CONSUMER, Group
from broker.protocol.consumer_protocol import decode_assignment
from broker.protocol.wire_types import DecodeError

# Reading more than this would hold up other groups.
COUNTED_BYTES = 256 << 10


def partitions_moved(group: Group) -> int | None:
    """How many partitions that had an owner in the last kept generation have another one, or none, in the assignment given now.

    A static member is the same under whatever member id. None for groups of other protocols, and where assignments cannot be
    read or are too large to be.
    """
    if group.protocol_type != CONSUMER:
        return None
    kept = group.metadata.members if group.metadata is not None else ()
    before = {member.group_instance_id or member.member_id: member.assignment for member in kept}
    now = {member.group_instance_id or member.member_id: member.assignment for member in group.members.values()}
    # Nothing moves between members whose assignments stay as they are.
    changed = [owner for owner in {**before, **now} if before.get(owner) != now.get(owner)]
    if sum(len(before.get(owner, b"")) + len(now.get(owner, b"")) for owner in changed) > COUNTED_BYTES:
        return None
    try:
        had, has = _owners(before, changed), _owners(now, changed)
    except DecodeError:
        return None
    return sum(has.get(partition) != owner for partition, owner in had.items())


def _owners(assignments: Mapping[str, bytes], members: Iterable[str]) -> dict[tuple[str, int], str]:
    return {
        (topic.topic, partition): owner
        for owner in members
        if assignments.get(owner)
        for topic in decode_assignment(assignments[owner]).assigned_partitions
        for partition in topic.partitions
    }
