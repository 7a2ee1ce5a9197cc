"""Loads of large groups take several turns of the event loop; requests that need them wait, and nothing else does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count, takewhile
from typing import Any

import pytest

from broker.cores.groups.coordinator import Coordinator
from broker.cores.groups.records import GroupMetadataTombstone, GroupRemoval, OffsetCommitRecord, TopicRemoval, to_row
from broker.cores.groups.settings import GroupSettings
from broker.server.group_loads import TURN_S, GroupLoads
from broker.storage import StorageError, TopicRow

PAGE = 10


class World:
    """The event loop, the topics and the store of two groups; reading a page takes a whole turn."""

    def __init__(self, pages: int) -> None:
        self.now_s = 0.0
        self.due: list[Callable[[], Any]] = []
        self.done: list[str] = []
        self.failures: list[BaseException] = []
        self.broken = False
        self.pages = pages
        stands_in: Any = self
        self.core = Coordinator(GroupSettings(), lambda: "id", stands_in)
        self.core.expect_offsets(["g", "h"])
        self.core.resume(0, 0)
        self.loads = GroupLoads(self.core, lambda: stands_in, stands_in, self.failures.append)

    def partition_count(self, topic: str) -> int | None:
        return None

    def time(self) -> float:
        return self.now_s

    def call_soon(self, run: Callable[..., Any], *arguments: Any) -> None:
        self.due.append(lambda: run(*arguments))

    def offset_pages(self, group_id: str) -> Iterator[list[TopicRow]]:
        for page in takewhile(lambda page: page < self.pages, count()):
            self.now_s += TURN_S
            if self.broken:
                raise StorageError("cannot read")
            commits = [OffsetCommitRecord(group_id, f"t{n % 2}", page * PAGE + n, 7, -1, "", 0) for n in range(PAGE)]
            yield [TopicRow(*to_row(commit)) for commit in commits]

    def need(self, name: str, *group_ids: str) -> None:
        self.loads.when_loaded(group_ids, lambda: self.done.append(name))

    def turn(self) -> None:
        due, self.due = self.due, []
        for run in due:
            run()

    def count(self, group_id: str) -> int:
        group = self.core.group(group_id)
        return 0 if group is None else sum(map(len, group.offsets.values()))


def test_a_turn_reads_one_page_and_requests_wait_in_order() -> None:
    world = World(3)
    world.need("first", "g")
    world.need("second", "g")
    world.need("unknown", "nobody")
    assert world.done == ["unknown"]
    for _ in range(2):
        assert world.count("g") == 0, "a part of a group's offsets is visible"
        world.turn()
    world.turn()
    world.turn()
    assert world.done == ["unknown", "first", "second"]
    assert world.count("g") == 3 * PAGE
    assert world.core.needs_load("h")
    assert not world.due


def test_two_loads_take_turns() -> None:
    world = World(3)
    world.need("g", "g")
    world.need("h and g", "h", "g")
    turns = 0
    while world.due:
        before = world.now_s
        world.turn()
        assert world.now_s - before < 1.5 * TURN_S
        turns += 1
    assert world.done == ["g", "h and g"]
    assert turns > 4


def test_a_topic_that_is_deleted_during_a_load_leaves_no_offsets() -> None:
    world = World(2)
    world.need("g", "g")
    world.core.apply(TopicRemoval("t0"))
    world.pages = 1  # the store does not return removed offsets
    while world.due:
        world.turn()
    group = world.core.group("g")
    assert group is not None
    assert {topic: len(partitions) for topic, partitions in group.offsets.items()} == {"t1": PAGE // 2}


def test_a_group_that_is_deleted_during_a_load_stays_deleted() -> None:
    world = World(3)
    world.need("g", "g")
    for record in (GroupRemoval("g"), GroupMetadataTombstone("g", 0)):
        world.core.apply(record)
    while world.due:
        world.turn()
    assert world.done == ["g"]
    assert world.core.group("g") is None


def test_a_failed_read_is_final() -> None:
    world = World(3)
    world.need("g", "g")
    world.broken = True
    with pytest.raises(StorageError):
        world.turn()
    with pytest.raises(StorageError):
        world.need("h", "h")
    assert [str(error) for error in world.failures] == ["cannot read"] * 2
    assert world.done == []
