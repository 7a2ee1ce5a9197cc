"""What happened to groups, as a stream of rows."""

from __future__ import annotations

from collections.abc import Mapping

from broker.light_dataclasses import dataclass, field
from kgctl.model.history import GroupEventRow, MemberClient


@dataclass(frozen=True, slots=True)
class EventRow:
    """One event of one group; `timestamp` in ms since 1970. Unknown values are None.

    `is_derived`: it was derived from what is stored in __consumer_offsets, which has no causes and no starts for classic groups.
    `clients` has those of members that joined or left, by member id, as far as they are known.
    """

    timestamp: int
    group: str
    event: str
    generation: int | None
    members: int | None
    joined_count: int | None
    left_count: int | None
    cause: str | None = None
    reason: str | None = None
    partitions_moved: int | None = None
    duration_ms: int | None = None
    joined: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    is_derived: bool = False
    group_type: str | None = None
    clients: Mapping[str, MemberClient] = field(default_factory=dict)


def event_row(event: GroupEventRow) -> EventRow:
    """A row of a group's history as a row of the stream."""
    phases = [phase for phase in (event.prepare_ms, event.complete_ms) if phase is not None]
    return EventRow(
        timestamp=event.timestamp,
        group=event.group,
        event=event.event,
        generation=event.generation,
        members=event.members,
        joined_count=event.joined_count,
        left_count=event.left_count,
        cause=event.cause,
        reason=event.reason,
        partitions_moved=event.partitions_moved,
        duration_ms=sum(phases) if phases else None,
        joined=event.joined,
        left=event.left,
        is_derived=event.is_derived,
        group_type=event.group_type,
        clients=event.clients,
    )
