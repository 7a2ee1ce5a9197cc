"""What members have been assigned, as events say it."""

from __future__ import annotations

from collections.abc import Mapping

from broker.cores.groups.events import ASSIGNMENT_CHARACTERS, Assignment, compact
from broker.cores.groups.records.consumer import Owned
from broker.cores.groups.topics import TopicCatalog, named_partitions


def assignment_of(owned: Mapping[str, Owned], catalog: TopicCatalog) -> Assignment | None:
    """The partitions of each member; None if they are too long for an event."""
    room = ASSIGNMENT_CHARACTERS - len("{}")
    if sum(len(member_id) + len('"":{},') for member_id in owned) > room:
        return None
    out: dict[str, dict[str, list[int]]] = {}
    for member_id, assigned in owned.items():
        out[member_id] = named = {name: partitions for _, name, partitions in named_partitions(assigned, catalog)}
        room -= len(compact({member_id: named})) - len("{}") + len("," if len(out) > 1 else "")
        if room < 0:
            return None
    return out
