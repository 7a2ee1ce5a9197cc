"""Members of the consumer protocol beside the real coordinator, in worlds of delays, lost connections, crashes and restarts."""

from __future__ import annotations

import time
from random import SystemRandom

import pytest

from tests.harness.simulation.__main__ import summary
from tests.harness.simulation.members.epochs import EpochsWorld
from tests.harness.simulation.world import Outcome

EVENTS = 400
FIXED = range(1, 31)
# In these, a member once took over what a heartbeat had given up while it committed.
LONG, LONG_EVENTS = (4873, 6512), 1_000
FRESH_S, SOAK_S = 1.0, 120.0


def test_members_keep_their_promises_in_the_worlds_of_known_seeds() -> None:
    outcomes = [_run(seed) for seed in FIXED]
    assert sum(outcome.generations for outcome in outcomes) > 50
    assert sum(outcome.brokers for outcome in outcomes) > 30
    assert sum(outcome.commits for outcome in outcomes) > 500


def test_what_a_heartbeat_has_given_up_meanwhile_is_not_taken_over() -> None:
    outcomes = [_run(seed, LONG_EVENTS) for seed in LONG]
    assert all(outcome.generations > 5 for outcome in outcomes)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seconds", [FRESH_S, pytest.param(SOAK_S, marks=pytest.mark.soak)])
def test_members_keep_their_promises_in_worlds_of_fresh_seeds(seconds: float) -> None:
    first, started, outcomes = SystemRandom().randrange(1_000_000, 2**40), time.perf_counter(), []
    print(f"fresh seeds from {first}")
    while time.perf_counter() - started < seconds:
        outcomes.append(_run(first + len(outcomes)))
    print(summary(outcomes, time.perf_counter() - started))


def _run(seed: int, events: int = EVENTS) -> Outcome:
    try:
        return EpochsWorld(seed, events).run()
    except Exception as error:
        raise AssertionError(
            f"seed {seed}: python -m tests.harness.simulation.members.epochs --seeds {seed} --events {events} --trace"
        ) from error
