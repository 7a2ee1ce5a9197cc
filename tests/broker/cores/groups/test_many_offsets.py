"""Groups with many offsets: expiry in steps of limited size, and deletion by one record."""

from __future__ import annotations

from broker.cores.groups.admin import TOMBSTONES_AT_ONCE
from broker.cores.groups.expiry import PART, RECORDS_PER_STEP
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.delete_groups import DeleteGroupsRequest
from tests.broker.cores.groups.world import QUICK, World, commit, fetch_all, fetched

MINUTE = 60_000
EXPIRING = QUICK._replace(offsets_retention_minutes=2, offsets_retention_check_interval_ms=MINUTE // 2)


def with_many_offsets(count: int) -> World:
    world = World(EXPIRING, topics={"orders": count})
    world.answer(commit({("orders", at): 1 for at in range(count)}), 8)
    world.records.clear()
    return world


def test_a_large_group_expires_in_steps_of_limited_size() -> None:
    world = with_many_offsets(2 * RECORDS_PER_STEP)
    sizes = []
    while world.core.group("g") is not None:
        assert world.wake_at is not None
        before = len(world.records)
        world.now_ms = world.wake_at
        world.take(world.core.advance(world.now_ms, world.wall_ms))
        sizes.append(len(world.records) - before)
    assert max(sizes) < RECORDS_PER_STEP + PART
    assert sum(sizes) == 2 * RECORDS_PER_STEP + 2
    assert not world.rows


def test_an_offset_that_is_committed_again_while_its_group_expires_stays() -> None:
    world = with_many_offsets(2 * RECORDS_PER_STEP)
    assert world.wake_at is not None
    while not world.records:
        world.now_ms = world.wake_at
        world.take(world.core.advance(world.now_ms, world.wall_ms))
    world.answer(commit({("orders", 0): 2}), 8)
    world.let_pass(MINUTE)
    assert fetched(world.answer(fetch_all(), 7)) == {("orders", 0): 2}


def test_a_large_group_is_deleted_by_one_record() -> None:
    world = with_many_offsets(TOMBSTONES_AT_ONCE + 1)
    assert world.answer(DeleteGroupsRequest(groups_names=["g"]), 2).results[0].error_code == ErrorCode.NONE
    assert [type(record).__name__ for record in world.records] == [
        "GroupRemoval",
        "GroupMetadataTombstone",
        "GenerationFloor",
    ]
    assert fetched(world.answer(fetch_all(), 7)) == {}
    world.answer(commit({("orders", 0): 2}), 8)
    world.start()
    assert fetched(world.answer(fetch_all(), 7)) == {("orders", 0): 2}
