"""The durable story: events of groups as values, and as the JSON of `__kgctl_group_events` (docs/group-events.md)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from broker.cores.groups.story import Cause

SCHEMA_VERSION = 1
# Ids that one event names; those beyond are counted.
NAMED_CHARACTERS = 8_192
# The JSON of who got what; where it is longer, nothing is told of it.
ASSIGNMENT_CHARACTERS = 8_192

Assignment: TypeAlias = "Mapping[str, Mapping[str, Sequence[int]]]"  # member id -> topic -> partitions


class Happening(Enum):
    """What an event is about, as readers see it."""

    REBALANCE_STARTED = "rebalance_started"
    STABLE = "stable"
    MEMBER_REPLACED = "member_replaced"
    EMPTY = "empty"
    DELETED = "deleted"


class Names:
    """Member ids, as many as fit in an event, and how many there were."""

    __slots__ = ("_room", "count", "named")

    def __init__(self) -> None:
        self.named: list[str] = []
        self.count = 0
        self._room = NAMED_CHARACTERS

    def add(self, names: Iterable[str]) -> None:
        for name in names:
            self.count += 1
            self._room -= len(name)
            if self._room >= 0:
                self.named.append(name)


class Departures(Names):
    """Members that have gone, each with why; the last of them may leave the group empty."""

    __slots__ = ("causes", "last")

    def __init__(self) -> None:
        super().__init__()
        self.causes: list[Cause] = []  # of those that are named
        self.last: tuple[Cause, str] | None = None

    def add_for(self, cause: Cause, detail: str, names: Iterable[str]) -> None:
        self.add(names)
        self.causes += [cause] * (len(self.named) - len(self.causes))
        self.last = cause, detail


@dataclass(slots=True)
class Tale:
    """Soft state: what has happened to a group since its last event. Times are of the monotonic clock."""

    cause: Cause | None = None
    detail: str = ""
    joined: Names = field(default_factory=Names)
    left: Departures = field(default_factory=Departures)
    absent: dict[str, None] = field(default_factory=dict)  # who was awaited when the rebalance timeout had passed
    commits_rejected: int = 0
    prepared_from_ms: int | None = None
    completing_from_ms: int | None = None


@dataclass(frozen=True, slots=True)
class GroupEvent:
    """One record. Absent numbers are those that the event does not have, or that cannot be known."""

    group_id: str
    happening: Happening
    cause: Cause | None
    reason: str
    generation: int
    wall_ms: int
    members: int
    joined: tuple[str, ...] = ()
    joined_count: int = 0
    left: tuple[str, ...] = ()
    left_count: int = 0
    prepare_ms: int | None = None
    complete_ms: int | None = None
    partitions_moved: int | None = None
    commits_rejected: int = 0
    left_causes: tuple[Cause, ...] = ()
    absent: tuple[str, ...] = ()
    absent_count: int = 0
    assignment: Assignment | None = None


def to_json(event: GroupEvent) -> bytes:
    """The value of the event's record. A new field leaves the version as it is; a changed meaning does not."""
    return compact(
        {
            "version": SCHEMA_VERSION,
            "group": event.group_id,
            "event": event.happening.value,
            "cause": event.cause.value if event.cause is not None else None,
            "reason": event.reason or None,
            "generation": event.generation,
            "timestamp": event.wall_ms,
            "members": event.members,
            "joined": event.joined,
            "joined_count": event.joined_count,
            "left": event.left,
            "left_causes": [cause.value for cause in event.left_causes],
            "left_count": event.left_count,
            "absent": event.absent,
            "absent_count": event.absent_count,
            "prepare_ms": event.prepare_ms,
            "complete_ms": event.complete_ms,
            "partitions_moved": event.partitions_moved,
            "commits_rejected": event.commits_rejected,
            "assignment": event.assignment,
        }
    )


def compact(value: object) -> bytes:
    """JSON in ASCII without spaces: a character is a byte."""
    return json.dumps(value, separators=(",", ":")).encode()
