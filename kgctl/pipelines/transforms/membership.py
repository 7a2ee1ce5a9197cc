"""Who came to a group and who left it, from a group's events or records, one after another. Does not import Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kgctl.model.history import JOINED
from kgctl.pipelines.transforms.rebalance_rules import (
    CLASSIC_TYPE,
    FROM_EVENTS,
    FROM_LOG,
    STARTED,
    Generation,
    Seat,
)

# A static member that returned is one that left, with the cause JOINED, and one that returned, with another member id.
CAME, RETURNED, LEFT, FENCED = "joined", "returned", "left", "fenced"
MEMBER_FENCED = "member_fenced"
_UUID = 37  # the last characters of an id that a coordinator gives, with the hyphen

# Client id and host, as far as they are known.
Client = tuple[str | None, str | None]
UNKNOWN: Client = (None, None)


@dataclass(frozen=True, slots=True)
class Membership:
    """A row of MEMBERSHIPS, with the time in ms since 1970. `members` members that the event does not name share a row."""

    group: str
    generation: int
    at_ms: int
    event: str
    cause: str | None = None
    member_id: str | None = None
    instance_id: str | None = None
    client_id: str | None = None
    client_host: str | None = None
    members: int = 1
    source: str = FROM_EVENTS
    group_type: str | None = None


@dataclass(frozen=True, slots=True)
class Changes:
    """Who came and went according to one event. Counts may exceed the lists; None: they do not."""

    group: str
    event: str
    generation: int
    at_ms: int
    joined: Sequence[str] = ()
    left: Sequence[str] = ()
    left_causes: Sequence[str] = ()
    joined_count: int | None = None
    left_count: int | None = None
    clients: Mapping[str, Client] | None = None
    group_type: str | None = None
    source: str = FROM_EVENTS
    instances: Mapping[str, str | None] | None = None


def memberships(changes: Changes) -> Iterator[Membership]:
    """The rows of an event. The start of a rebalance has none: the event at its end names the same members again."""
    if changes.event == STARTED:
        return
    clients, instances = changes.clients or {}, changes.instances or {}
    common = Membership(
        changes.group,
        changes.generation,
        changes.at_ms,
        CAME,
        source=changes.source,
        group_type=changes.group_type,
    )

    def row(event: str, member: str, cause: str | None) -> Membership:
        client_id, host = clients.get(member, UNKNOWN)
        if client_id is None and changes.group_type == CLASSIC_TYPE and changes.source == FROM_EVENTS:
            client_id = member[:-_UUID] or None
        return replace(
            common,
            event=event,
            cause=cause,
            member_id=member,
            instance_id=instances.get(member),
            client_id=client_id or None,
            client_host=host or None,
        )

    if changes.event == MEMBER_FENCED:
        for member in clients:
            yield row(FENCED, member, None)
    causes = [*changes.left_causes, *[None] * len(changes.left)][: len(changes.left)]
    gone = [member for member, cause in zip(changes.left, causes, strict=True) if cause == JOINED]
    returned = set(_successors(gone, changes.joined, clients, instances))
    for member, cause in zip(changes.left, causes, strict=True):
        yield row(LEFT, member, cause)
    for member in changes.joined:
        yield row(RETURNED if member in returned else CAME, member, None)
    for event, count, named in (
        (LEFT, changes.left_count, changes.left),
        (CAME, changes.joined_count, changes.joined),
    ):
        if count is not None and count > len(named):
            yield replace(common, event=event, members=count - len(named))


def between(
    group: str, before: Generation | None, now: Generation, at_ms: int, group_type: str = CLASSIC_TYPE
) -> Iterator[Membership]:
    """The rows between two consecutive records of a classic group, whose seats prove which static members returned.

    Without a record before, those of the first generation have joined; of later generations it is not known when they did.
    """
    if before is None:
        if now.number > 1:
            return
        before = Generation(0, ())
    had = {seat.holder: seat for seat in before.seats}
    has = {seat.holder: seat for seat in now.seats}

    def row(event: str, seat: Seat, cause: str | None = None) -> Membership:
        names = seat.member_id, seat.instance_id, seat.client_id or None, seat.client_host or None
        return Membership(group, now.number, at_ms, event, cause, *names, source=FROM_LOG, group_type=group_type)

    for holder, seat in had.items():
        if holder not in has:
            yield row(LEFT, seat)
        elif has[holder].member_id != seat.member_id:
            yield row(LEFT, seat, JOINED)
    for holder, seat in has.items():
        if holder not in had:
            yield row(CAME, seat)
        elif had[holder].member_id != seat.member_id:
            yield row(RETURNED, seat)


def _successors(
    gone: Iterable[str], joined: Sequence[str], clients: Mapping[str, Client], instances: Mapping[str, str | None]
) -> Iterator[str]:
    """The members that took the places of static members: of the same instance, if instances are known, or if ids begin with them
    as in classic groups; else of the same client, else in order.
    """
    free = list(joined)
    for member in gone:
        if not free:
            return
        client = clients.get(member)
        same = [one for one in free if instances.get(one) and instances.get(one) == instances.get(member)]
        named = [one for one in free if member[:-_UUID] and one[:-_UUID] == member[:-_UUID]]
        alike = [one for one in free if client is not None and clients.get(one) == client]
        found = (same or named or alike or free)[0]
        free.remove(found)
        yield found
