"""Who came and who left: the events and the records of our coordinator agree, and add up to the members it has. Without Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from kgctl.model.history import LEFT_OR_TIMED_OUT
from kgctl.pipelines.transforms.membership import (
    CAME,
    FENCED,
    LEFT,
    RETURNED,
    Changes,
    Membership,
    between,
    memberships,
)
from kgctl.pipelines.transforms.rebalance_rules import FROM_LOG, Generation, Seat
from kgctl.pipelines.transforms.stored_log import StoredLog
from tests.broker.cores.groups.world import World
from tests.kgctl.watch.group_worlds import consumer_world, share_world
from tests.kgctl.watch.test_derived_agreement import GONE, stored

UUIDS = [f"-{number:036d}" for number in range(4)]


def from_events(world: World) -> list[Membership]:
    return [
        row
        for one in world.events
        for row in memberships(
            Changes(
                group=one.group_id,
                event=one.type.value,
                generation=one.generation,
                at_ms=one.wall_ms,
                joined=one.joined,
                left=one.left,
                left_causes=[cause.value for cause in one.left_causes],
                clients={name: tuple(client) for name, client in one.clients.items()},
                group_type=one.group_type,
            )
        )
    ]


def from_log(world: World) -> list[Membership]:
    """Each record is read by another process, which continues from what the one before has stored."""
    text, found = "", list[Membership]()
    for record in stored(world):
        log = StoredLog.from_json(text) if text else StoredLog()
        assert all(log.add(record))
        found += log.memberships
        text = log.to_json()
    return found


@pytest.mark.parametrize("make", [consumer_world, share_world])
@pytest.mark.parametrize("seed", range(3))
def test_events_and_records_agree_and_add_up(make: Callable[[int], World], seed: int) -> None:
    def known(row: Membership) -> tuple[Any, ...]:
        cause = LEFT_OR_TIMED_OUT if row.cause in GONE else row.cause
        # Which of two members of one client has returned, events do not say.
        event = CAME if row.event == RETURNED else row.event
        return row.at_ms, event, cause, row.member_id, row.client_id, row.client_host, row.generation, row.group_type

    world = make(seed)
    recorded = [row for row in from_events(world) if row.event != FENCED]
    logged = from_log(world)
    assert sorted(map(known, recorded), key=repr) == sorted(map(known, logged), key=repr)
    assert {row.source for row in logged} == {FROM_LOG}
    came = Counter(row.member_id for row in recorded if row.event in (CAME, RETURNED))
    gone = Counter(row.member_id for row in recorded if row.event == LEFT)
    assert set(came.values()) == {1}
    assert gone <= came
    assert gone.total() > 5
    for rows in (recorded, logged):
        returned = [row.at_ms for row in rows if row.event == RETURNED]
        assert returned == [row.at_ms for row in rows if row.cause == "member joined"]
    # The log knows the instances of static members, and so which one came back.
    assert all(row.instance_id for row in logged if row.event == RETURNED)


def seat(member_id: str, instance_id: str | None = None, host: str = "/10.0.0.1") -> Seat:
    return Seat(member_id, instance_id, (), "client", host)


def test_between_two_generations_of_a_classic_group() -> None:
    before = Generation(3, (seat("a"), seat("b"), seat("s-1", "s")))
    now = Generation(4, (seat("b"), seat("s-2", "s", "/10.0.0.2"), seat("c")))
    rows = list(between("g", before, now, 77))
    assert [(row.event, row.member_id, row.cause, row.client_host) for row in rows] == [
        (LEFT, "a", None, "/10.0.0.1"),
        (LEFT, "s-1", "member joined", "/10.0.0.1"),
        (RETURNED, "s-2", None, "/10.0.0.2"),
        (CAME, "c", None, "/10.0.0.1"),
    ]
    assert {(row.group, row.generation, row.at_ms, row.source) for row in rows} == {("g", 4, 77, FROM_LOG)}


def test_when_the_members_of_the_first_record_joined_is_not_known_unless_it_is_the_first_generation() -> None:
    assert list(between("g", None, Generation(7, (seat("a"),)), 1)) == []
    (row,) = between("g", None, Generation(1, (seat("a"),)), 1)
    assert (row.event, row.member_id) == (CAME, "a")


def test_static_members_of_classic_events_are_matched_by_the_instance_in_their_ids() -> None:
    one, other, back, new = (f"{name}{uuid}" for name, uuid in zip(("x", "y", "y", "z"), UUIDS, strict=True))
    changes = Changes(
        "g", "stable", 5, 9, (new, back), (one, other), ("session timed out", "member joined"), group_type="classic"
    )
    assert [(row.event, row.member_id, row.client_id, row.cause) for row in memberships(changes)] == [
        (LEFT, one, "x", "session timed out"),
        (LEFT, other, "y", "member joined"),
        (CAME, new, "z", None),
        (RETURNED, back, "y", None),
    ]


def test_members_that_an_event_only_counts_share_a_row_and_a_start_has_none() -> None:
    changes = Changes("g", "stable", 5, 9, ("m",), (), joined_count=301, left_count=0)
    assert [(row.event, row.member_id, row.members) for row in memberships(changes)] == [
        (CAME, "m", 1),
        (CAME, None, 300),
    ]
    assert list(memberships(Changes("g", "rebalance_started", 4, 8, ("m",), joined_count=301))) == []


def test_a_fenced_member_is_named_by_its_client() -> None:
    (row,) = memberships(Changes("g", "member_fenced", 5, 9, clients={"m": ("c", "/h")}, group_type="consumer"))
    assert (row.event, row.member_id, row.client_id, row.client_host) == (FENCED, "m", "c", "/h")
