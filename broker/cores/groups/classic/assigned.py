"""Who gets what in a generation of a consumer group, as its event tells it."""

from __future__ import annotations

from broker.cores.groups.classic.moves import COUNTED_BYTES
from broker.cores.groups.events import ASSIGNMENT_CHARACTERS, Assignment, compact
from broker.cores.groups.group import CONSUMER, Group
from broker.protocol.consumer_protocol import decode_assignment
from broker.protocol.wire_types import DecodeError


def assigned(group: Group) -> Assignment | None:
    """The partitions that each member was given; none for one that the leader left out.

    None for groups of other protocols, where assignments cannot be read, and where an event has no room for them.
    """
    if group.protocol_type != CONSUMER:
        return None
    given = {member.member_id: member.assignment for member in group.members.values()}
    # A large group is not read at all: its names alone are too long.
    if sum(len(member_id) + len('"":{},') for member_id in given) > ASSIGNMENT_CHARACTERS:
        return None
    if sum(map(len, given.values())) > COUNTED_BYTES:
        return None
    found: dict[str, dict[str, list[int]]] = {}
    room = ASSIGNMENT_CHARACTERS - len("{}")
    for member_id, blob in given.items():
        try:
            found[member_id] = _by_topic(blob)
        except DecodeError:
            return None
        room -= len(compact({member_id: found[member_id]})) - len("{}") + len("," if len(found) > 1 else "")
        if room < 0:
            return None
    return found


def _by_topic(blob: bytes) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for row in decode_assignment(blob).assigned_partitions if blob else ():
        topics.setdefault(row.topic, []).extend(row.partitions)
    return topics
