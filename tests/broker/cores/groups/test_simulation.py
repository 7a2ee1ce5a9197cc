"""Seeded worlds: the same ones each time, some that nobody has seen, and proof that a seed says it all."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from random import SystemRandom

import pytest

from tests.harness.simulation.__main__ import summary
from tests.harness.simulation.chronicle import EventRow
from tests.harness.simulation.clock import SECOND
from tests.harness.simulation.consumer import Consumer, Phase, Profile
from tests.harness.simulation.disk import Disk
from tests.harness.simulation.faults import Faults
from tests.harness.simulation.terms import Violation
from tests.harness.simulation.world import Outcome, World, run_seed

EVENTS = 2_000
FIXED = range(1, 41)
FRESH_SECONDS, FRESH_EVENTS = 5.0, 250_000


@pytest.mark.parametrize("first", range(FIXED.start, FIXED.stop, 10))
def test_the_promises_hold_in_worlds_known_by_their_seeds(first: int) -> None:
    for seed in range(first, first + 10):
        _run(seed)


def test_the_promises_hold_in_worlds_that_nobody_has_seen() -> None:
    first, began, events, outcomes = SystemRandom().randrange(1_000_000, 2**40), time.perf_counter(), 0, []
    print(f"fresh seeds from {first}")
    while events < FRESH_EVENTS and time.perf_counter() - began < FRESH_SECONDS:
        outcomes.append(_run(first + len(outcomes)))
        events += outcomes[-1].events
    print(summary(outcomes, time.perf_counter() - began))


def test_a_world_sees_rebalances_restarts_and_acknowledged_commits() -> None:
    outcomes = [run_seed(seed, EVENTS) for seed in FIXED[:10]]
    assert sum(outcome.generations for outcome in outcomes) > 50
    assert sum(outcome.brokers for outcome in outcomes) > 20
    assert sum(outcome.commits for outcome in outcomes) > 500


def test_a_seed_gives_the_same_world_byte_by_byte_in_another_interpreter() -> None:
    digests = {run_seed(seed, EVENTS).digest for seed in (7, 7)}
    for hash_seed in ("1", "2"):
        command = [sys.executable, "-m", "tests.harness.simulation", "--seeds", "7", "--events", str(EVENTS)]
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        told = subprocess.run(command, capture_output=True, text=True, env=environment, check=True, timeout=60).stdout
        digests.add(told.split()[-1])
    assert len(digests) == 1


def test_a_broker_that_is_stopped_twice_evicts_nobody_whose_heartbeats_have_come_in() -> None:
    world = World(1, EVENTS)
    world.faults = Faults()
    newest = (9, 5, 4, 9, 5)
    goes = Consumer(world, "goes", Profile("g0", None, 6_000, 10_000, *newest))
    stays = Consumer(world, "stays", Profile("g1", None, 30_000, 30_000, *newest))
    goes.start()
    stays.start()
    _let_pass(world, 12 * SECOND)
    member_id = stays.member_id
    assert (goes.phase, stays.phase) == (Phase.STABLE, Phase.STABLE)
    # What comes in during the first stop takes away the very deadline that was missed.
    world.broker.loop.stop(8 * SECOND)
    goes.leave()
    _let_pass(world, 9 * SECOND)
    world.broker.loop.stop(31 * SECOND)
    _let_pass(world, 33 * SECOND)
    assert (stays.phase, stays.member_id, stays.generation) == (Phase.STABLE, member_id, 1)


def _let_pass(world: World, us: int) -> None:
    until_us = world.clock.us + us
    while world.clock.us < until_us:
        world.step()


class ForgetfulDisk(Disk):
    """Says that a commit is durable, and forgets the rows of every tenth."""

    def flush(self) -> None:
        super().flush()
        if len(self.journal) % 10 == 0:
            self.durable.rows.clear()


class EventlessDisk(Disk):
    """Says that a commit is durable, and forgets the newest event of every tenth."""

    def flush(self) -> None:
        super().flush()
        if len(self.journal) % 10 == 0:
            del self.durable.events[-1:]


class PartialDisk(Disk):
    """Keeps the records of a commit that fails, and not its events."""

    def _keep(self) -> None:
        if self.failed:
            self._pending = [change for change in self._pending if not isinstance(change, EventRow)]
        super()._keep()


def test_a_promise_that_is_broken_fails_the_seed() -> None:
    with pytest.raises(Violation, match=r"the log|after a crash"):
        World(1, EVENTS, disk_type=ForgetfulDisk).run()
    with pytest.raises(Violation, match="events"):
        World(1, EVENTS, disk_type=EventlessDisk).run()


def test_a_commit_that_keeps_records_and_loses_their_events_fails_a_seed() -> None:
    with pytest.raises(Violation, match="not told"):
        _run_known_worlds(PartialDisk)


def _run_known_worlds(disk_type: type[Disk]) -> None:
    for seed in FIXED:
        World(seed, EVENTS, disk_type=disk_type).run()


def _run(seed: int) -> Outcome:
    try:
        return run_seed(seed, EVENTS)
    except Exception as error:
        error.add_note(f"repeat it with: make sim SEEDS={seed} EVENTS={EVENTS}")
        raise
