"""Pending offsets of large groups, of groups that are not loaded or being loaded, and at the limits of a request."""

from __future__ import annotations

import pytest

from broker.cores.core import BrokenInvariant
from broker.cores.groups.offsets import FETCHED_AT_ONCE, MAX_COMMITTED_PARTITIONS
from broker.cores.groups.records import PendingOffsetsRemoval
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.offset_fetch import OffsetFetchRequest
from tests.broker.cores.groups.world import World, commit, commit_in_transaction, fetch_all, fetched

NONE, UNSTABLE = ErrorCode.NONE, ErrorCode.UNSTABLE_OFFSET_COMMIT


def after_restart() -> World:
    """The group's three offsets are in the store only, and a transaction is about to change the first and the last."""
    world = World()
    world.answer(commit({("orders", 0): 1, ("orders", 1): 1, ("orders", 2): 1}), 8)
    world.answer(commit_in_transaction({("orders", 0): 5, ("orders", 2): 5}), 3)
    world.start()
    return world


def errors(world: World, **fields: int | str) -> list[int]:
    answered = world.answer(commit_in_transaction({("orders", 0): 5, ("orders", 1): 5}, **fields), 3)  # type: ignore[arg-type]
    return [partition.error_code for partition in answered.topics[0].partitions]


def test_the_end_of_a_transaction_does_not_load_its_group() -> None:
    world = after_restart()
    world.end_transaction(7, is_commit=True)
    assert not world.loads
    assert not world.group().offsets
    assert fetched(world.answer(fetch_all(), 7)) == {("orders", 0): 5, ("orders", 1): 1, ("orders", 2): 5}


@pytest.mark.parametrize("read_before", [0, 1, 3])
def test_a_transaction_that_ends_while_its_group_is_loaded_commits_every_offset(read_before: int) -> None:
    world = after_restart()
    stored = world.stored()[1]["g"]
    world.core.begin_load("g")
    world.core.add_loaded("g", stored[:read_before])
    world.end_transaction(7, is_commit=True)
    # What is read later is the newest row of each key.
    newest = {record.partition: record for record in world.stored()[1]["g"]}  # type: ignore[union-attr]
    world.core.add_loaded("g", [newest[partition] for partition in range(read_before, 3)])
    world.core.end_load("g")
    assert fetched(world.answer(fetch_all(), 7)) == {("orders", 0): 5, ("orders", 1): 1, ("orders", 2): 5}


def test_stored_offsets_do_not_expire_while_a_transaction_of_their_group_is_open() -> None:
    world = after_restart()
    assert not world.core.can_expire_unloaded("g")
    world.end_transaction(7, is_commit=False)
    assert world.core.can_expire_unloaded("g")


def test_a_group_with_only_pending_offsets_exists_after_a_restart() -> None:
    world = World()
    world.answer(commit_in_transaction({("orders", 0): 5}), 3)
    world.start()
    assert world.group().state.value == "Empty"
    assert not world.core.can_expire_unloaded("g")


def test_a_long_answer_marks_the_partitions_that_are_not_stable() -> None:
    count = FETCHED_AT_ONCE + 10
    world = World(topics={"orders": count + 1})
    world.answer(commit({("orders", at): at for at in range(count)}), 8)
    world.answer(commit_in_transaction({("orders", 3): 9, ("orders", count - 1): 9, ("orders", count): 9}), 3)
    answered = world.answer(OffsetFetchRequest(group_id="g", topics=None, require_stable=True), 7)
    rows = {row.partition_index: (row.error_code, row.committed_offset) for row in answered.topics[0].partitions}
    assert rows == {at: (NONE, at) for at in range(count)} | {3: (UNSTABLE, -1), count - 1: (UNSTABLE, -1)}


def test_a_transactional_commit_of_too_many_offsets_is_refused() -> None:
    world = World(topics={"orders": MAX_COMMITTED_PARTITIONS + 1})
    offsets = {("orders", at): 1 for at in range(MAX_COMMITTED_PARTITIONS + 1)}
    answered = world.answer(commit_in_transaction(offsets), 3)
    assert {row.error_code for row in answered.topics[0].partitions} == {ErrorCode.INVALID_COMMIT_OFFSET_SIZE}
    assert not world.records
    del offsets["orders", 0]
    answered = world.answer(commit_in_transaction(offsets), 3)
    assert {row.error_code for row in answered.topics[0].partitions} == {NONE}
    steps = 1
    while world.end_transaction(7, is_commit=True, limit=1_000):
        steps += 1
    assert steps == 10
    assert len(fetched(world.answer(fetch_all(), 7))) == MAX_COMMITTED_PARTITIONS


def test_a_refused_transactional_commit_counts_as_a_rejected_one() -> None:
    world = World()
    world.generation(1)
    assert errors(world, member_id="stranger", generation_id=1) == [ErrorCode.UNKNOWN_MEMBER_ID] * 2
    assert world.group().pending_event.commits_rejected == 1


def test_metadata_that_is_too_long_refuses_only_its_partition() -> None:
    world = World()
    request = commit_in_transaction({("orders", 0): 5, ("orders", 1): 5})
    request.topics[0].partitions[1].committed_metadata = "x" * 4_097
    answered = world.answer(request, 3)
    assert [row.error_code for row in answered.topics[0].partitions] == [NONE, ErrorCode.OFFSET_METADATA_TOO_LARGE]
    world.end_transaction(7, is_commit=True)
    assert fetched(world.answer(fetch_all(), 7)) == {("orders", 0): 5}


def test_the_removal_of_unknown_pending_offsets_is_a_broken_invariant() -> None:
    with pytest.raises(BrokenInvariant, match="producer 7 has no pending offsets of group g"):
        World().core.apply(PendingOffsetsRemoval(7, "g"))
