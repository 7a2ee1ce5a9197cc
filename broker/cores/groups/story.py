"""What happened to a group, why and when: bounded lists of events that tests, the CLI and dashboards read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

EVENTS_PER_GROUP = 100
MEMBERS_PER_EVENT = 1_000
DELETED_GROUPS = 1_000
TOLD_AS_ONE_MS = 5_000
# As much of a reason as Kafka's clients send (KIP-800).
DETAIL_CHARACTERS = 255


class Cause(Enum):
    """Why a group changed, in the words that users see."""

    MEMBER_JOINED = "member joined"
    MEMBER_LEFT = "member left"
    SESSION_TIMED_OUT = "session timed out"
    SYNC_TIMED_OUT = "sync timed out"
    REBALANCE_TIMED_OUT = "rebalance timed out"
    SUBSCRIPTION_CHANGED = "subscription changed"
    REQUESTED_BY_ADMIN = "requested by an admin"
    GROUP_DELETED = "group deleted"


@dataclass(slots=True)
class Event:
    """One cause with the members that it brought or took.

    `generation` is the one that the event leads to, or the present one where it leads to none. Events of one kind in a few
    seconds are told as one: a thousand members that join together are one event.
    """

    cause: Cause
    generation: int
    wall_ms: int
    joined: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    detail: str = ""


class Stories:
    """The newest events of each group, and of the groups deleted last."""

    __slots__ = ("_deleted", "_events")

    def __init__(self) -> None:
        self._events: dict[str, list[Event]] = {}
        self._deleted: dict[str, None] = {}

    def of(self, group_id: str) -> list[Event]:
        """The events of the group, oldest first; not to be changed."""
        return self._events.get(group_id, [])

    def tell(
        self,
        group_id: str,
        cause: Cause,
        generation: int,
        wall_ms: int,
        joined: Sequence[str] = (),
        left: Sequence[str] = (),
        detail: str = "",
    ) -> None:
        detail = detail[:DETAIL_CHARACTERS]
        events = self._events.setdefault(group_id, [])
        last = events[-1] if events else None
        if (
            last is None
            or (last.cause, last.generation, last.detail) != (cause, generation, detail)
            or wall_ms - last.wall_ms > TOLD_AS_ONE_MS
        ):
            last = Event(cause, generation, wall_ms, detail=detail)
            events.append(last)
            del events[:-EVENTS_PER_GROUP]
        if joined and len(last.joined) < MEMBERS_PER_EVENT:
            last.joined = (*last.joined, *joined)[:MEMBERS_PER_EVENT]
        if left and len(last.left) < MEMBERS_PER_EVENT:
            last.left = (*last.left, *left)[:MEMBERS_PER_EVENT]
        if cause is Cause.GROUP_DELETED:
            self._forget_deleted(group_id)
        else:
            self._deleted.pop(group_id, None)

    def _forget_deleted(self, group_id: str) -> None:
        self._deleted.pop(group_id, None)
        self._deleted[group_id] = None
        if len(self._deleted) > DELETED_GROUPS:
            oldest = next(iter(self._deleted))
            del self._deleted[oldest], self._events[oldest]
