"""The rules by which rebalances follow from a group's events or records, one after another. Does not import Spark."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from kgctl.model.topic_partition import TopicPartition

STARTED, STABLE, EMPTY, DELETED = "rebalance_started", "stable", "empty", "deleted"

FROM_EVENTS, FROM_LOG = "events", "log"
CLASSIC_TYPE = "classic"


@dataclass(frozen=True, slots=True)
class Rebalance:
    """A row of schemas.REBALANCES, with times in ms since 1970. `joined` and `left` are None if not known."""

    group: str
    generation: int
    started_ms: int | None
    ended_ms: int
    duration_ms: int | None
    duration_source: str
    cause: str | None
    reason: str | None
    joined: tuple[str, ...] | None
    left: tuple[str, ...] | None
    members: int | None
    moved_parts: int | None
    skew: float | None
    commits_rejected: int | None
    group_type: str | None = None


# ---- from the events of kgctl's broker --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Event:
    """The fields of an event (docs/group-events.md) that the rules need."""

    group: str
    event: str
    generation: int
    at_ms: int
    cause: str | None = None
    reason: str | None = None
    joined: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    members: int | None = None
    prepare_ms: int | None = None
    complete_ms: int | None = None
    partitions_moved: int | None = None
    commits_rejected: int = 0
    group_type: str | None = None


@dataclass(frozen=True, slots=True)
class OpenRebalance:
    """What is known since the last rebalance ended: when an unfinished one started, and rejected commits."""

    started_ms: int | None = None
    commits_rejected: int = 0


def follow(state: OpenRebalance, event: Event) -> tuple[OpenRebalance, Rebalance | None]:
    """The new state, and the rebalance that the event ends, if it ends one.

    A rebalance that another one supersedes has not ended; both count as one that started with the first. If the start is
    not known, it is computed from the durations of the phases in the event.
    """
    rejected = state.commits_rejected + event.commits_rejected
    if event.event == DELETED:
        return OpenRebalance(), None
    if event.event == STARTED:
        return OpenRebalance(event.at_ms if state.started_ms is None else state.started_ms, rejected), None
    if event.event not in (STABLE, EMPTY):
        return OpenRebalance(state.started_ms, rejected), None
    started_ms = state.started_ms
    if started_ms is None and event.prepare_ms is not None:
        started_ms = event.at_ms - event.prepare_ms - (event.complete_ms or 0)
    return OpenRebalance(), Rebalance(
        group=event.group,
        generation=event.generation,
        started_ms=started_ms,
        ended_ms=event.at_ms,
        # The wall clock may have been set back.
        duration_ms=None if started_ms is None else max(0, event.at_ms - started_ms),
        duration_source=FROM_EVENTS,
        cause=event.cause,
        reason=event.reason,
        joined=event.joined,
        left=event.left,
        members=event.members,
        moved_parts=event.partitions_moved,
        skew=None,
        commits_rejected=rejected,
        group_type=event.group_type,
    )


# ---- from the group metadata of any cluster ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Seat:
    """A member in a generation; `assigned` is None if the assignment cannot be decoded. The client is "" if it is not known."""

    member_id: str
    instance_id: str | None
    assigned: tuple[tuple[str, tuple[int, ...]], ...] | None
    client_id: str = ""
    client_host: str = ""

    @property
    def holder(self) -> str:
        """The identity across generations: a static member keeps its instance id when its member id changes."""
        return self.instance_id or self.member_id

    @property
    def parts(self) -> int | None:
        return None if self.assigned is None else sum(len(parts) for _, parts in self.assigned)


@dataclass(frozen=True, slots=True)
class Generation:
    """A group as one of its records describes it."""

    number: int
    seats: tuple[Seat, ...]

    def to_json(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"))


def generation_from_json(text: str) -> Generation:
    fields = json.loads(text)
    return Generation(
        fields["number"],
        tuple(
            Seat(
                seat["member_id"],
                seat["instance_id"],
                None if seat["assigned"] is None else tuple((topic, tuple(parts)) for topic, parts in seat["assigned"]),
                seat.get("client_id", ""),
                seat.get("client_host", ""),
            )
            for seat in fields["seats"]
        ),
    )


def compare(group: str, before: Generation | None, now: Generation, ended_ms: int) -> Rebalance | None:
    """The rebalance between two consecutive records of a group.

    None if there was none: the generation is the same, as when a static member returns, or the group only commits offsets.
    `before` is None for the first record of a group; unless that is of the first generation, joined and left members and
    moved partitions are not known.
    """
    if before is None and now.number <= 1:
        before = Generation(0, ())
    if (before is not None and before.number == now.number) or now.number == 0:
        return None
    joined = left = None
    if before is not None:
        joined = _without(now.seats, before.seats)
        left = _without(before.seats, now.seats)
    return Rebalance(
        group=group,
        generation=now.number,
        started_ms=None,
        ended_ms=ended_ms,
        duration_ms=None,
        duration_source=FROM_LOG,
        cause=None,
        reason=None,
        joined=joined,
        left=left,
        members=len(now.seats),
        moved_parts=_moved(before, now),
        skew=skew([seat.parts for seat in now.seats]),
        commits_rejected=None,
        group_type=CLASSIC_TYPE,
    )


def _without(seats: Iterable[Seat], others: Iterable[Seat]) -> tuple[str, ...]:
    holders = {seat.holder for seat in others}
    return tuple(seat.member_id for seat in seats if seat.holder not in holders)


def _moved(before: Generation | None, now: Generation) -> int | None:
    """Partitions that had an owner and now have another or none. None for an empty group, as in kgctl's events."""
    if before is None or not now.seats:
        return None
    had, has = _owners(before.seats), _owners(now.seats)
    if had is None or has is None:
        return None
    return sum(has.get(part) != owner for part, owner in had.items())


def _owners(seats: Iterable[Seat]) -> Mapping[TopicPartition, str] | None:
    owners: dict[TopicPartition, str] = {}
    for seat in seats:
        if seat.assigned is None:
            return None
        owners |= {TopicPartition(topic, part): seat.holder for topic, parts in seat.assigned for part in parts}
    return owners


def skew(parts: Sequence[int | None]) -> float | None:
    """The partitions of the busiest member divided by the mean; None if not known, or if there are none."""
    known = [count for count in parts if count is not None]
    if len(known) < len(parts) or not sum(known):
        return None
    return max(known) * len(known) / sum(known)
