"""The events of a group: why it changed, who joined and left, and how long it took; as values and as JSON.

docs/group-events.md documents the JSON, which the topic `__kgctl_group_events` keeps.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from itertools import accumulate
from typing import TypeAlias

from broker.light_dataclasses import dataclass, field
from broker.light_named_tuples import NamedTuple

SCHEMA_VERSION = 1
# An event names member ids up to this total length and counts the rest.
NAMED_CHARACTERS = 8_192
# One of a rebalance that has only started names fewer: in a consumer group, each member that joins starts another one.
STARTED_CHARACTERS = 256
# An event carries its assignment only if its JSON is at most this long.
ASSIGNMENT_CHARACTERS = 8_192
# An event has the clients of members that joined or left up to this length of their names and hosts.
CLIENT_CHARACTERS = 8_192
# The longest reason that Kafka's clients send (KIP-800).
REASON_CHARACTERS = 255

Assignment: TypeAlias = "Mapping[str, Mapping[str, Sequence[int]]]"  # member id -> topic -> partitions


class EventType(Enum):
    """What an event reports, as readers see it."""

    REBALANCE_STARTED = "rebalance_started"
    STABLE = "stable"
    MEMBER_REPLACED = "member_replaced"
    EMPTY = "empty"
    MEMBER_FENCED = "member_fenced"
    DELETED = "deleted"


class Cause(Enum):
    """Why a group changed, as readers see it."""

    MEMBER_JOINED = "member joined"
    MEMBER_LEFT = "member left"
    SESSION_TIMED_OUT = "session timed out"
    SYNC_TIMED_OUT = "sync timed out"
    REBALANCE_TIMED_OUT = "rebalance timed out"
    SUBSCRIPTION_CHANGED = "subscription changed"
    TOPICS_CHANGED = "topics changed"
    REQUESTED_BY_ADMIN = "requested by an admin"
    GROUP_DELETED = "group deleted"


class MemberClient(NamedTuple):
    """The program behind a member id, which does not name it in the newer protocols."""

    client_id: str
    host: str


class NamedMembers:
    """Member ids, as many as fit in an event, and the count of all."""

    __slots__ = ("_room", "count", "named")

    def __init__(self) -> None:
        self.named: list[str] = []
        self.count = 0
        self._room = NAMED_CHARACTERS

    def add(self, member_ids: Iterable[str]) -> None:
        for member_id in member_ids:
            self.count += 1
            self._room -= len(member_id)
            if self._room >= 0:
                self.named.append(member_id)


def first_named(member_ids: Sequence[str], characters: int) -> tuple[str, ...]:
    """The first ids, up to this total length."""
    for place, length in enumerate(accumulate(map(len, member_ids))):
        if length > characters:
            return tuple(member_ids[:place])
    return tuple(member_ids)


class Departures(NamedMembers):
    """Members that left, each with its cause. `last` is the cause and reason of the latest."""

    __slots__ = ("causes", "last")

    def __init__(self) -> None:
        super().__init__()
        self.causes: list[Cause] = []  # one for each named member
        self.last: tuple[Cause, str] | None = None

    def add_for(self, cause: Cause, reason: str, member_ids: Iterable[str]) -> None:
        self.add(member_ids)
        self.causes += [cause] * (len(self.named) - len(self.causes))
        self.last = cause, reason


@dataclass(slots=True)
class PendingEvent:
    """Soft state: what the next event of a group will report. Times are on the monotonic clock."""

    cause: Cause | None = None
    reason: str = ""
    joined: NamedMembers = field(default_factory=NamedMembers)
    left: Departures = field(default_factory=Departures)
    absent: dict[str, None] = field(default_factory=dict)  # members still awaited when the rebalance timeout expired
    clients: dict[str, MemberClient] = field(default_factory=dict)  # of members that joined or left
    clients_room: int = CLIENT_CHARACTERS
    commits_rejected: int = 0
    prepare_started_ms: int | None = None
    complete_started_ms: int | None = None

    def set_cause(self, cause: Cause, reason: str) -> None:
        self.cause, self.reason = cause, reason[:REASON_CHARACTERS]

    def add_left(self, cause: Cause, reason: str, member_ids: Iterable[str]) -> None:
        self.left.add_for(cause, reason[:REASON_CHARACTERS], member_ids)

    def add_client(self, member_id: str, client_id: str, host: str) -> None:
        self.clients_room -= len(client_id) + len(host)
        if self.clients_room >= 0:
            self.clients[member_id] = MemberClient(client_id, host)

    def prepare_ms(self, now_ms: int) -> int | None:
        """How long the join phase took, if it has ended; otherwise how long it has taken so far."""
        if self.prepare_started_ms is None:
            return None
        return (now_ms if self.complete_started_ms is None else self.complete_started_ms) - self.prepare_started_ms

    def complete_ms(self, now_ms: int) -> int | None:
        """How long the sync phase has taken so far."""
        return None if self.complete_started_ms is None else now_ms - self.complete_started_ms


class GroupEvent(NamedTuple):
    """One event. A number is None if it does not apply to the event's type or cannot be known."""

    group_id: str
    type: EventType
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
    group_type: str = "classic"
    clients: Mapping[str, MemberClient] = {}


def to_json(event: GroupEvent) -> bytes:
    """The value of the event's record. The version changes with the meaning of a field, not when a field is added."""
    return compact(
        {
            "version": SCHEMA_VERSION,
            "group": event.group_id,
            "group_type": event.group_type,
            "event": event.type.value,
            "cause": event.cause.value if event.cause is not None else None,
            "reason": event.reason or None,
            "generation": event.generation,
            "timestamp": event.wall_ms,
            "members": event.members,
            "joined": event.joined,
            "joined_count": event.joined_count,
            "clients": {
                one: {"client_id": client_id, "host": host} for one, (client_id, host) in event.clients.items()
            },
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
    """JSON in ASCII without spaces, so that each character is one byte."""
    return json.dumps(value, separators=(",", ":")).encode()
