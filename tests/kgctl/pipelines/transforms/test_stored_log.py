"""Rebalances from the records of our coordinator are those that its events give, as far as both know them. Without Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from broker.cores.groups.events import EventType
from kgctl.model.history import LEFT_OR_TIMED_OUT
from kgctl.pipelines.transforms.rebalance_rules import Event, OpenRebalance, Rebalance, follow
from kgctl.pipelines.transforms.stored_log import StoredLog
from tests.broker.cores.groups.world import World
from tests.kgctl.watch.group_worlds import consumer_world, mixed_world, share_world
from tests.kgctl.watch.test_derived_agreement import GONE, stored


def from_events(world: World) -> list[Rebalance]:
    open_, found = OpenRebalance(), []
    for one in world.events:
        if one.type is EventType.MEMBER_FENCED:
            continue
        event = Event(
            group=one.group_id,
            event=one.type.value,
            generation=one.generation,
            at_ms=one.wall_ms,
            cause=None if one.cause is None else one.cause.value,
            joined=one.joined,
            left=one.left,
            members=one.members,
            prepare_ms=one.prepare_ms,
            complete_ms=one.complete_ms,
            partitions_moved=one.partitions_moved,
            group_type=one.group_type,
        )
        open_, rebalance = follow(open_, event)
        if rebalance is not None:
            found.append(rebalance)
    return found


def from_log(world: World) -> list[Rebalance]:
    """Each record is read by another process, which continues from what the one before has stored."""
    text, found = "", []
    for record in stored(world):
        log = StoredLog.from_json(text) if text else StoredLog()
        found += log.add(record)
        text = log.to_json()
    return found


@pytest.mark.parametrize("make", [consumer_world, share_world])
@pytest.mark.parametrize("seed", range(3))
def test_both_sources_give_the_same_rebalances(make: Callable[[int], World], seed: int) -> None:
    def known(row: Rebalance) -> tuple[Any, ...]:
        cause = LEFT_OR_TIMED_OUT if row.cause in GONE else row.cause
        who = {*(row.joined or ())}, {*(row.left or ())}
        numbers = row.generation, row.started_ms, row.ended_ms, row.duration_ms, row.members, row.moved_parts
        return cause, who, numbers, row.group_type

    world = make(seed)
    assert [known(row) for row in from_log(world)] == [known(row) for row in from_events(world)]


@pytest.mark.parametrize("is_static", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_rebalances_agree_across_changes_of_the_type(seed: int, is_static: bool) -> None:
    world, log = mixed_world(seed, is_static=is_static), StoredLog()
    found = [rebalance for record in stored(world) for rebalance in log.add(record)]

    def known(row: Rebalance) -> tuple[Any, ...]:
        return row.group_type, row.generation, row.ended_ms, row.members

    # A static member that returns ends a rebalance whose start no log has.
    recorded = [known(row) for row in from_events(world)]
    assert [row for row in map(known, found) if row not in recorded] == []
    assert len(found) >= len(recorded) - 2
