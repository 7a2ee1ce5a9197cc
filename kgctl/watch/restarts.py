"""Recognizes a rebalance that a restart of the broker caused: members came back under new ids."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

from broker.light_dataclasses import replace
from kgctl.model.history import SESSION_TIMED_OUT, GroupEventRow
from kgctl.model.watched import Assignment, Rebalance
from kgctl.watch.assignments import partitions_moved

RESTARTED = "broker restarted"
# Clients that wait for the broker join again within this time after its start.
WITHIN_MS = 120_000
_UUID = re.compile(r"-?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$", re.IGNORECASE)

Row = TypeVar("Row", Rebalance, GroupEventRow)


def after_restart(row: Row, before: Assignment | None) -> Row:
    """The first rebalance since a restart as what it is; unchanged if members left for other reasons, or none came back.

    Clients that were without a broker for longer than their session timeout join under new ids, and the coordinator lets
    their former ids time out. Such members have neither joined nor left, and a partition that a member has under its new id
    has not moved. `before` is the assignment before the restart.
    """
    back = came_back(row.left, row.joined)
    if not back or any(cause != SESSION_TIMED_OUT for cause in row.left_causes):
        return row
    joined = tuple(one for one in row.joined if one not in back)
    former = frozenset(back.values())
    left = tuple(one for one in row.left if one not in former)
    moved = partitions_moved(None if before is None else renamed(before, back), row.assignment)
    return replace(
        row,
        cause=RESTARTED,
        reason=f"{len(back):,} of {row.left_count or 0:,} members came back under new ids",
        joined=joined,
        joined_count=(row.joined_count or 0) - len(back),
        left=left,
        left_count=(row.left_count or 0) - len(back),
        left_causes=tuple(SESSION_TIMED_OUT for _ in left),
        partitions_moved=row.partitions_moved if moved is None else moved,
    )


def came_back(left: Sequence[str], joined: Sequence[str]) -> dict[str, str]:
    """The former id by new id of each client that left and joined. Clients with the same client id are paired in order."""
    places: dict[str, list[str]] = {}
    for one in sorted(left):
        places.setdefault(client_of(one), []).append(one)
    return {new: places[client_of(new)].pop(0) for new in sorted(joined) if places.get(client_of(new))}


def renamed(assignment: Assignment, back: dict[str, str]) -> Assignment:
    """The assignment with the new ids of members that came back."""
    new_ids = {old: new for new, old in back.items()}
    return {new_ids.get(member_id, member_id): owned for member_id, owned in assignment.items()}


def is_soon(rebalance_ms: int, started_ms: int) -> bool:
    """Whether a rebalance began so soon after the start of the broker that the restart may be its cause."""
    return rebalance_ms <= started_ms + WITHIN_MS


def with_restart(rows: Sequence[GroupEventRow], started_ms: int) -> list[GroupEventRow]:
    """The rebalances of a group, with the one that the start of the broker at `started_ms` caused as what it is."""
    found = list(rows)
    place = next((place for place, row in enumerate(found) if row.timestamp >= started_ms), None)
    if place is not None and is_soon(found[place].timestamp - (found[place].prepare_ms or 0), started_ms):
        assignments = (row.assignment for row in reversed(found[:place]) if row.assignment is not None)
        found[place] = after_restart(found[place], next(assignments, None))
    return found


def client_of(member_id: str) -> str:
    """A member id without the UUID at its end, which brokers and clients append."""
    return _UUID.sub("", member_id)
