"""What the events of a consumer group report about its assignment: who has which partitions, and how many have moved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from broker.cores.groups.classic.group import CONSUMER, ClassicGroup
from broker.cores.groups.events import ASSIGNMENT_CHARACTERS, Assignment, compact
from broker.protocol.consumer_protocol import decode_assignment
from broker.protocol.wire_types import DecodeError

# The most bytes of assignments that are decoded; more would delay other clients.
DECODED_BYTES = 256 << 10


def assignment_of(group: ClassicGroup) -> Assignment | None:
    """The partitions of each member; none for a member that the leader left out.

    None for groups of other protocol types, for assignments that cannot be read, and for those too long for an event.
    """
    if group.protocol_type != CONSUMER:
        return None
    encoded = {member.member_id: member.assignment for member in group.members.values()}
    # Decode nothing if the names of the members alone are too long.
    if sum(len(member_id) + len('"":{},') for member_id in encoded) > ASSIGNMENT_CHARACTERS:
        return None
    if sum(map(len, encoded.values())) > DECODED_BYTES:
        return None
    decoded: dict[str, dict[str, list[int]]] = {}
    room = ASSIGNMENT_CHARACTERS - len("{}")
    for member_id, blob in encoded.items():
        try:
            decoded[member_id] = _by_topic(blob)
        except DecodeError:
            return None
        room -= len(compact({member_id: decoded[member_id]})) - len("{}") + len("," if len(decoded) > 1 else "")
        if room < 0:
            return None
    return decoded


def _by_topic(blob: bytes) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for row in decode_assignment(blob).assigned_partitions if blob else ():
        topics.setdefault(row.topic, []).extend(row.partitions)
    return topics


def partitions_moved(group: ClassicGroup) -> int | None:
    """How many partitions that had an owner in the last stored generation have another owner now, or none.

    A static member is the same owner under every member id. None for groups of other protocol types, and for assignments that
    cannot be read or are too large to be decoded.
    """
    if group.protocol_type != CONSUMER:
        return None
    stored = group.metadata.members if group.metadata is not None else ()
    before = {member.group_instance_id or member.member_id: member.assignment for member in stored}
    now = {member.group_instance_id or member.member_id: member.assignment for member in group.members.values()}
    # Members with unchanged assignments neither give nor take partitions.
    changed = [owner for owner in {**before, **now} if before.get(owner) != now.get(owner)]
    if sum(len(before.get(owner, b"")) + len(now.get(owner, b"")) for owner in changed) > DECODED_BYTES:
        return None
    try:
        owners_before, owners_now = _owners(before, changed), _owners(now, changed)
    except DecodeError:
        return None
    return sum(owners_now.get(partition) != owner for partition, owner in owners_before.items())


def _owners(assignments: Mapping[str, bytes], members: Iterable[str]) -> dict[tuple[str, int], str]:
    return {
        (topic.topic, partition): owner
        for owner in members
        if assignments.get(owner)
        for topic in decode_assignment(assignments[owner]).assigned_partitions
        for partition in topic.partitions
    }
