"""Simulated worlds with members of the consumer protocol beside classic ones: known seeds, fresh seeds, and a judge that is awake."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from random import SystemRandom

import pytest

from tests.harness.simulation.__main__ import summary
from tests.harness.simulation.consumer_groups.world import ConsumerGroupsWorld, run_seed
from tests.harness.simulation.world import Outcome

EVENTS = 1_000
FIXED = range(1, 41)
FRESH_S, SOAK_S = 1.0, 60.0


def test_partitions_have_one_owner_in_the_worlds_of_known_seeds() -> None:
    outcomes, evictions = [], 0
    for seed in FIXED:
        world = ConsumerGroupsWorld(seed, EVENTS)
        outcomes.append(_run(world, seed))
        evictions += world.judge.evictions
    assert sum(outcome.generations for outcome in outcomes) > 500
    assert sum(outcome.brokers for outcome in outcomes) > 100
    assert sum(outcome.commits for outcome in outcomes) > 1_000
    assert evictions > 30


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seconds", [FRESH_S, pytest.param(SOAK_S, marks=pytest.mark.soak)])
def test_partitions_have_one_owner_in_worlds_of_fresh_seeds(seconds: float) -> None:
    first, started, outcomes = SystemRandom().randrange(1_000_000, 2**40), time.perf_counter(), list[Outcome]()
    print(f"fresh seeds from {first}")
    while time.perf_counter() - started < seconds:
        seed = first + len(outcomes)
        outcomes.append(_run(ConsumerGroupsWorld(seed, EVENTS), seed))
    print(summary(outcomes, time.perf_counter() - started))


def test_a_seed_determines_its_world_in_every_interpreter() -> None:
    digests = {run_seed(7, EVENTS).digest}
    command = [
        sys.executable,
        "-m",
        "tests.harness.simulation.consumer_groups",
        "--seeds",
        "7",
        "--events",
        str(EVENTS),
    ]
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    printed = subprocess.run(command, capture_output=True, text=True, env=environment, check=True, timeout=60).stdout
    digests.add(printed.split()[-1])
    assert len(digests) == 1


def _run(world: ConsumerGroupsWorld, seed: int) -> Outcome:
    try:
        return world.run()
    except Exception as error:
        error.add_note(f"python -m tests.harness.simulation.consumer_groups --seeds {seed} --events {EVENTS} --trace")
        raise
