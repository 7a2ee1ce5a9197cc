"""Simulated worlds with transactions: known seeds, fresh seeds, and proof that a seed determines its world."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from random import SystemRandom

import pytest

from tests.harness.simulation.transactions.__main__ import summary
from tests.harness.simulation.transactions.world import Outcome, run_seed

EVENTS = 400
FIXED = (*range(1, 10), 21, 25, 38, 63)
FRESH_S, SOAK_S = 2.0, 60.0


def test_every_transaction_is_whole_in_the_worlds_of_known_seeds() -> None:
    outcomes = [_run(seed) for seed in FIXED]
    assert {outcome.level for outcome in outcomes} == {0, 1, 2}
    assert sum(outcome.commits for outcome in outcomes) > 60
    assert sum(outcome.brokers for outcome in outcomes) > 20
    assert sum(outcome.delivered for outcome in outcomes) > 500


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seconds", [FRESH_S, pytest.param(SOAK_S, marks=pytest.mark.soak)])
def test_every_transaction_is_whole_in_worlds_of_fresh_seeds(seconds: float) -> None:
    first, started, outcomes = SystemRandom().randrange(1_000_000, 2**40), time.perf_counter(), []
    print(f"fresh seeds from {first}")
    while time.perf_counter() - started < seconds:
        outcomes.append(_run(first + len(outcomes)))
    print(summary(outcomes, time.perf_counter() - started))


def test_a_seed_determines_its_world(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also on a machine where everything takes a thousand times as long."""
    seed = 7
    command = [sys.executable, "-m", "tests.harness.simulation.transactions"]
    command += ["--seeds", str(seed), "--events", str(EVENTS)]
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    printed = subprocess.run(command, capture_output=True, text=True, env=environment, check=True, timeout=60).stdout
    clock = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: 1000 * clock())
    assert printed.split()[-1] == run_seed(seed, EVENTS).digest


def _run(seed: int) -> Outcome:
    try:
        return run_seed(seed, EVENTS)
    except Exception as error:
        error.add_note(
            f"repeat it with: python -m tests.harness.simulation.transactions --seeds {seed} --events {EVENTS}"
        )
        raise
