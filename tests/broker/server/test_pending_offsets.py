"""Pending offsets over a real log: they survive a restart and end with their transaction, in one flush with everything else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias

import pytest

from broker.cores.groups.coordinator import Coordinator
from broker.cores.groups.settings import GroupSettings
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.delete_groups import DeleteGroupsRequest
from broker.protocol.messages.describe_group_details import DescribeGroupDetailsRequest
from broker.protocol.messages.offset_fetch import OffsetFetchRequest
from broker.protocol.offsets_topic import partition_for
from broker.protocol.wire_types import Message
from broker.server.exchange import Exchange
from broker.server.flush import Flusher
from broker.server.group_runner import ENDED_AT_ONCE, GroupRunner
from broker.storage import Log
from tests.broker.cores.groups.world import commit, commit_in_transaction
from tests.harness.simulation.broker import NoFetches
from tests.harness.simulation.clock import BrokerLoop, Clock
from tests.harness.stores import NOW, open_log

NONE, UNSTABLE = ErrorCode.NONE, ErrorCode.UNSTABLE_OFFSET_COMMIT
PARTITIONS = 2 * ENDED_AT_ONCE + 1


class Run:
    """A runner over the log of a directory, and the client of its requests."""

    client_host, session = "/127.0.0.1", SimpleNamespace(principal="User:ANONYMOUS")

    def __init__(self, directory: Path) -> None:
        self.log: Log = open_log(directory)
        if "orders" not in self.log.topics:
            self.log.create_topic("orders", PARTITIONS, {})
        loop: Any = BrokerLoop(Clock())
        waiters: Any = NoFetches()
        self.core = Coordinator(GroupSettings(), lambda: "id", self)
        flusher = Flusher(self.log, loop, flushed=lambda: None, wake=lambda: None, failed=lambda _: None)
        self.runner = GroupRunner(self.core, self.log, flusher, waiters, loop, lambda: NOW, 1 << 40)
        self.runner.recover()
        self.log.flush()
        self.answer: Any = None

    def partition_count(self, topic: str) -> int | None:
        found = self.log.topics.get(topic)
        return None if found is None else found.partition_count

    def ask(self, request: Message, version: int, *loads: str) -> Any:
        self.answer = None
        connection: Any = self
        self.runner.load_and_submit(request, Exchange(connection, request.API_KEY, version, 0, "c"), loads)
        return self.answer

    def answered(self, exchange: Exchange, response: Message) -> None:
        self.answer = response

    def commit(self, partition: int, offset: int) -> None:
        self.ask(commit({("orders", partition): offset}), 8, "g")

    def commit_in_transaction(self, *partitions: int, producer: int = 7, offset: int = 5) -> None:
        self.ask(commit_in_transaction({("orders", at): offset for at in partitions}, producer), 3, "g")

    def end(self, producer: int = 7, *, is_commit: bool = True) -> bool:
        return self.runner.end_transaction(producer, 0, [partition_for("g")], is_commit=is_commit)

    def offsets(self, *partitions: int) -> list[tuple[int, int]]:
        topic = OffsetFetchRequest.Topic(name="orders", partition_indexes=list(partitions))
        answered = self.ask(OffsetFetchRequest(group_id="g", topics=[topic], require_stable=True), 7, "g")
        return [(row.error_code, row.committed_offset) for row in answered.topics[0].partitions]


Start: TypeAlias = Callable[..., Run]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts the next run. The one before is killed, after a flush or before it."""
    runs: list[Run] = []

    def start(*, flush: bool = True) -> Run:
        if runs:
            if flush:
                runs[-1].log.flush()
            runs[-1].log.close(clean=False)
        runs.append(Run(tmp_path))
        return runs[-1]

    yield start
    runs[-1].log.close()


def test_pending_offsets_survive_a_restart_and_end_with_their_transaction(start: Start) -> None:
    run = start()
    run.commit(0, 1)
    run.commit_in_transaction(0, 1)
    run.commit_in_transaction(1, 2, producer=8, offset=6)
    run = start()
    assert run.offsets(0, 1, 2) == [(UNSTABLE, -1)] * 3
    run = start()
    # The group's offsets are only in the store.
    assert not run.end(8)
    assert not run.end(7)
    assert run.offsets(0, 1, 2) == [(NONE, 5), (NONE, 6), (NONE, 6)]
    run = start()
    assert run.offsets(0, 1, 2) == [(NONE, 5), (NONE, 6), (NONE, 6)]
    assert not run.log.pending_offsets.all()


def test_an_aborted_transaction_leaves_the_committed_offsets(start: Start) -> None:
    run = start()
    run.commit(0, 1)
    run.commit_in_transaction(0, 1)
    run = start()
    assert not run.end(is_commit=False)
    run = start()
    assert run.offsets(0, 1) == [(NONE, 1), (NONE, -1)]
    assert not run.log.pending_offsets.all()


def test_the_end_of_a_transaction_is_part_of_one_flush(start: Start) -> None:
    run = start()
    run.commit_in_transaction(0, 1)
    run = start()
    run.end()
    run = start(flush=False)
    assert run.offsets(0, 1) == [(UNSTABLE, -1)] * 2
    run.end()
    assert start().offsets(0, 1) == [(NONE, 5)] * 2


def test_a_later_commit_wins_also_after_a_restart(start: Start) -> None:
    run = start()
    run.commit_in_transaction(0, 1)
    run.commit(0, 9)
    run = start()
    run.end()
    assert run.offsets(0, 1) == [(NONE, 9), (NONE, 5)]


def test_a_large_transaction_ends_in_parts(start: Start) -> None:
    run = start()
    run.commit_in_transaction(*range(PARTITIONS))
    run = start()
    assert run.end()
    # Killed between two parts.
    run = start()
    assert sorted(run.offsets(*range(PARTITIONS))) == [(NONE, 5)] * ENDED_AT_ONCE + [(UNSTABLE, -1)] * (
        PARTITIONS - ENDED_AT_ONCE
    )
    assert run.end()
    assert not run.end()
    assert start().offsets(*range(PARTITIONS)) == [(NONE, 5)] * PARTITIONS


def test_a_transaction_ends_only_for_groups_in_its_partitions_of_the_offsets_topic(start: Start) -> None:
    run = start()
    run.commit_in_transaction(0)
    others = set(range(50)) - {partition_for("g")}
    assert not run.runner.end_transaction(7, 0, others, is_commit=True)
    assert run.offsets(0) == [(UNSTABLE, -1)]


@pytest.mark.parametrize("what", ["group", "topic"])
def test_pending_offsets_of_a_deleted_group_or_topic_do_not_come_back(start: Start, what: str) -> None:
    run = start()
    run.commit_in_transaction(0, 1)
    if what == "group":
        run.ask(DeleteGroupsRequest(groups_names=["g"]), 2)
    else:
        run.runner.topic_deleted("orders")
    run = start()
    assert not run.log.pending_offsets.all()
    run.end()
    assert run.offsets(0, 1) == [(NONE, -1)] * 2


def test_details_have_the_times_of_commits_and_the_pending_offsets_of_each_producer(start: Start) -> None:
    run = start()
    run.commit(0, 1)
    run.commit_in_transaction(0, 1)
    run.commit_in_transaction(1, producer=8)
    asked = DescribeGroupDetailsRequest(groups=["g"], include_commits=True)

    for at in (run, start()):
        (group,) = at.ask(asked, 1, "g").groups

        assert [(row.topic, row.partitions, row.committed_ms) for row in group.commits] == [("orders", [0], [NOW])]
        assert [(row.producer_id, row.partitions) for row in group.pending] == [(7, [0, 1]), (8, [1])]
        (bare,) = at.ask(DescribeGroupDetailsRequest(groups=["g"]), 1).groups
        assert (bare.commits, bare.pending) == ([], [])
