"""Events that are derived from the records of our coordinator are those that it records itself, as far as both know them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from broker.cores.groups.events import EventType, GroupEvent
from broker.cores.groups.records import GenerationFloor, to_row
from kgctl.client.admin.group_records import GroupRecord, group_record
from kgctl.model.history import LEFT_OR_TIMED_OUT, GroupEventRow
from kgctl.watch.derived_events import DerivedEvents, with_names
from tests.broker.cores.groups.world import World
from tests.kgctl.watch.group_worlds import LASTING, TOPICS, consumer_world, mixed_world, share_world

# A stored group shows that a member left, not why.
GONE = {"member left", "session timed out", "rebalance timed out"}


def stored(world: World) -> list[GroupRecord]:
    """What the coordinator has written about groups, read back from the bytes."""
    rows = [to_row(state) for state in world.records if not isinstance(state, GenerationFloor)]  # type: ignore[arg-type]
    found = [group_record(row.key, row.value, row.timestamp_ms) for row in rows]
    return [record for record in found if record is not None]


def derived(world: World) -> list[GroupEventRow]:
    found = DerivedEvents()
    for record in stored(world):
        found.take(record, True)
    world.topics |= dict.fromkeys(TOPICS, 1)
    names = {(world.topic_id(name) or b"").hex(): name for name in TOPICS}
    return [with_names(row, names) for row in found.rows()]


def known(world: World) -> tuple[list[Any], list[Any]]:
    """The recorded and the derived events, as far as a log can prove them."""
    recorded = [_of_event(event) for event in world.events if event.type is not EventType.MEMBER_FENCED]
    return recorded, [_of_row(row) for row in derived(world)]


def _of_event(event: GroupEvent) -> tuple[Any, ...]:
    cause = None if event.cause is None else event.cause.value
    if event.type is EventType.MEMBER_REPLACED:
        cause = None
    assigned = event.assignment
    owned = None if assigned is None else {m: [*topics.get(LASTING, ())] for m, topics in assigned.items()}
    return (
        event.wall_ms,
        event.type.value,
        event.group_type,
        event.generation,
        LEFT_OR_TIMED_OUT if cause in GONE else cause,
        event.members,
        sorted(event.joined),
        sorted(event.left),
        event.prepare_ms,
        event.partitions_moved,
        owned,
        {member: tuple(client) for member, client in event.clients.items()},
    )


def _of_row(row: GroupEventRow) -> tuple[Any, ...]:
    owned = None
    if row.assignment is not None:
        owned = {
            member: [number for entry in topics if entry.topic == LASTING for number in entry.partitions]
            for member, topics in row.assignment.items()
        }
    return (
        row.timestamp,
        row.event,
        row.group_type,
        row.generation,
        row.cause,
        row.members,
        sorted(row.joined),
        sorted(row.left),
        row.prepare_ms,
        row.partitions_moved,
        owned,
        {member: (client.client_id, client.host) for member, client in row.clients.items()},
    )


@pytest.mark.parametrize("make", [consumer_world, share_world])
@pytest.mark.parametrize("seed", range(8))
def test_recorded_and_derived_events_agree(make: Callable[[int], World], seed: int) -> None:
    recorded, found = known(make(seed))
    assert found == recorded


@pytest.mark.parametrize("is_static", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_events_agree_across_changes_of_the_type(seed: int, is_static: bool) -> None:
    """Of classic generations a log has the ends only: not their causes, not who came and left before the end, and not whether
    a rebalance was under way when the group became a consumer group, which a static member that returns then ends.
    """
    recorded, found = known(mixed_world(seed, is_static=is_static))

    def ends(events: list[Any]) -> list[Any]:
        return [
            (at_ms, kind.replace("member_replaced", "stable"), *of, members, {*joined} - {*left}, {*left} - {*joined})
            for at_ms, kind, *of, _, members, joined, left, _, _, _, _ in events
            if kind != "rebalance_started"
        ]

    assert ends(found) == ends(recorded)
