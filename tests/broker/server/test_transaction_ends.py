"""Ends of transactions share a turn of the event loop, and a partition that cannot be written delays no other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from broker.cores.groups.coordinator import Coordinator
from broker.cores.groups.settings import GroupSettings
from broker.cores.transactions.step import Markers
from broker.protocol.errors import ErrorCode
from broker.server import transaction_ends
from broker.server.flush import Flusher
from broker.server.group_runner import GroupRunner
from broker.server.transaction_ends import SLICE_S, TURN_PARTITIONS, TURN_S, TransactionEnds
from tests.harness.descriptors import exhausted
from tests.harness.requests import create_topic, fetch
from tests.harness.running import RunningBroker, until
from tests.harness.simulation.broker import NoFetches
from tests.harness.simulation.clock import SECOND, BrokerLoop, Clock
from tests.harness.simulation.transactions.broker import SlowLoop
from tests.harness.stores import NOW, open_log, topic_log
from tests.harness.transactions import READ_COMMITTED, TransactionalProducer
from tests.harness.wire_client import WireClient

PARTITIONS = TURN_PARTITIONS + 1


class Run:
    """The ends of transactions on a machine where each look at the clock takes some time."""

    def __init__(self, directory: Path, look_s: float) -> None:
        self.log = open_log(directory)
        self.log.create_topic("t", PARTITIONS, {})
        self.loop: BrokerLoop = SlowLoop(Clock(), round(look_s * SECOND))
        loop: Any = self.loop
        waiters: Any = NoFetches()
        flusher = Flusher(self.log, loop, flushed=lambda: None, wake=lambda: None, failed=lambda _: None)
        core = Coordinator(GroupSettings(), lambda: "id", self)
        groups = GroupRunner(core, self.log, flusher, waiters, loop, lambda: NOW, 1 << 40)
        self.ended: list[str] = []
        self.ends = TransactionEnds(self.log, groups, waiters, flusher, loop, lambda: NOW, self.ended.append)

    def partition_count(self, topic: str) -> int | None:
        return PARTITIONS

    def end(self, *transactions: tuple[str, range]) -> None:
        """End transactions in one turn."""
        for producer_id, (name, partitions) in enumerate(transactions):
            self.ends.add(Markers(name, producer_id, 0, 0, True, tuple(("t", index) for index in partitions)))
            self.ends.begin()

    def turns(self) -> list[int]:
        """Run turns until everything has ended; return how many had ended after each."""
        out = []
        while not self.loop.idle:
            self.loop.turn()
            out.append(len(self.ended))
        return out


Start: TypeAlias = Callable[[float], Run]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    runs: list[Run] = []

    def start(look_s: float) -> Run:
        runs.append(Run(tmp_path, look_s))
        return runs[-1]

    yield start
    runs[-1].log.close()


def test_a_small_transaction_ends_at_once_also_on_a_slow_machine(start: Start) -> None:
    run = start(1.1 * SLICE_S)
    run.end(("small", range(1)))
    assert run.ended == ["small"]


def test_each_turn_writes_something_however_slow_the_machine_is(start: Start) -> None:
    run = start(2 * TURN_S)
    run.end(("a", range(3)), ("b", range(2)))
    run.turns()
    assert run.ended == ["a", "b"]


def test_the_ends_of_a_turn_share_its_time(start: Start) -> None:
    run = start(TURN_S / 4.5)
    names = [f"tx{number}" for number in range(50)]
    run.end(*((name, range(1)) for name in names))
    assert run.ended == names[:5]
    assert set(run.turns()) >= {10, 50}
    assert run.ended == names


def test_the_ends_of_a_turn_share_its_partitions(start: Start) -> None:
    run = start(0.0)
    half = TURN_PARTITIONS // 2
    run.end(("a", range(half)), ("b", range(half)), ("c", range(half, PARTITIONS - 1)), ("d", range(1)))
    assert run.ended == ["a", "b", "c"]
    run.turns()
    assert run.ended == ["a", "b", "c", "d"]


def test_small_transactions_end_while_a_large_one_does(start: Start) -> None:
    run = start(0.0)
    run.end(("large", range(PARTITIONS)), ("small", range(2)))
    assert run.ended == ["small"]
    run.turns()
    assert run.ended == ["small", "large"]


def stable(client: WireClient, partition: int) -> int:
    offset: int = fetch(client, "t", 0, partition=partition, isolation_level=READ_COMMITTED).last_stable_offset
    return offset


def test_a_partition_that_cannot_be_written_delays_no_other(
    running: RunningBroker, client: WireClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction_ends, "RETRY_S", 0.05)
    create_topic(client, "t", partitions=2)
    running.run(lambda: setattr(running.log._files, "limit", 1))
    producer = TransactionalProducer(client, "tx")
    # So that the modules of all requests are loaded.
    producer.produce("t", b"x", partition=1)
    assert producer.end(committed=False) == ErrorCode.NONE
    assert (producer.state(), stable(client, 1)) == ("CompleteAbort", 2)
    for partition in (0, 1):
        assert producer.produce("t", b"x", partition=partition).error_code == ErrorCode.NONE
    producer.commit_offsets("g", "t", (0, 7))

    with exhausted(running.log):
        # Only the file of the second partition is open.
        assert producer.end(committed=True) == ErrorCode.NONE
        assert until(lambda: stable(client, 1) == 4)
        assert not running.run(lambda: running.log.pending_offsets.all())
        assert running.run(lambda: topic_log(running.log, "t", 0).last_stable_offset) == 0
        assert producer.state() == "PrepareCommit"
    assert until(lambda: producer.state() == "CompleteCommit")
    assert (stable(client, 0), stable(client, 1)) == (2, 4)
