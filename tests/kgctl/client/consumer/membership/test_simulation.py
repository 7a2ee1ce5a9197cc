"""Real members beside the real coordinator, in worlds of delays, lost connections, crashes and restarts."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from random import SystemRandom

import pytest

from kgctl.client.consumer.group.commits import Commits
from kgctl.client.consumer.group.generation import Generation
from kgctl.client.consumer.group.membership import Membership
from kgctl.client.consumer.group.rebalance import Rebalance
from kgctl.client.consumer.subscription import SubscriptionState
from tests.harness.simulation.__main__ import summary
from tests.harness.simulation.members.world import MemberWorld, run_seed
from tests.harness.simulation.terms import Violation
from tests.harness.simulation.world import Outcome

EVENTS = 400
FIXED = range(1, 61)
FRESH_S, SOAK_S = 2.0, 120.0


@pytest.mark.parametrize("first", range(FIXED.start, FIXED.stop, 30))
def test_members_keep_their_promises_in_the_worlds_of_known_seeds(first: int) -> None:
    outcomes = [_run(seed) for seed in range(first, first + 30)]
    assert sum(outcome.generations for outcome in outcomes) > 50
    assert sum(outcome.brokers for outcome in outcomes) > 30
    assert sum(outcome.commits for outcome in outcomes) > 1_000


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seconds", [FRESH_S, pytest.param(SOAK_S, marks=pytest.mark.soak)])
def test_members_keep_their_promises_in_worlds_of_fresh_seeds(seconds: float) -> None:
    first, started, outcomes = SystemRandom().randrange(1_000_000, 2**40), time.perf_counter(), []
    print(f"fresh seeds from {first}")
    while time.perf_counter() - started < seconds:
        outcomes.append(_run(first + len(outcomes)))
    print(summary(outcomes, time.perf_counter() - started))


def test_a_seed_determines_its_world_in_every_interpreter() -> None:
    digests = {run_seed(8, EVENTS).digest}
    command = [sys.executable, "-m", "tests.harness.simulation.members", "--seeds", "8", "--events", str(EVENTS)]
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    printed = subprocess.run(command, capture_output=True, text=True, env=environment, check=True, timeout=60).stdout
    digests.add(printed.split()[-1])
    assert len(digests) == 1


# --- the judge sees what members do wrong ---


def _fails(seeds: range = range(1, 30)) -> str:
    for seed in seeds:
        try:
            run_seed(seed, EVENTS)
        except Violation as violation:
            return str(violation)
    return "nothing was noticed"


def test_the_judge_sees_a_member_that_keeps_what_it_should_revoke(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Rebalance, "_give_up", lambda self, partitions: None)
    assert _fails() != "nothing was noticed"


def test_the_judge_sees_a_commit_of_records_that_are_not_processed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Automatic commits in the background, and not in poll."""
    advance = Commits.advance

    def eager(self: Commits, now_ms: int) -> None:
        if self._membership.stable_generation is not None:
            self.auto_commit_if_due(now_ms)
        advance(self, now_ms)

    monkeypatch.setattr(Commits, "advance", eager)
    assert "records are processed" in _fails(range(160, 300))


def test_the_judge_sees_a_member_without_heartbeats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Membership, "_send_heartbeat", lambda self, now_ms: self.heartbeat.sent(now_ms))
    assert "not stable" in _fails()


def test_the_judge_sees_a_member_that_forgets_a_lost_generation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Generation, "owns_nothing", property(lambda self: False))
    assert _fails() != "nothing was noticed"


def test_the_judge_sees_positions_that_a_commit_before_revocation_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is lost by it: the records are read twice. But positions past the records would be."""
    consumed = SubscriptionState.consumed

    def ahead(self: SubscriptionState) -> object:
        return {partition: at._replace(offset=at.offset + 1) for partition, at in consumed(self).items()}

    monkeypatch.setattr(SubscriptionState, "consumed", ahead)
    assert "records are processed" in _fails()


def _run(seed: int) -> Outcome:
    try:
        return MemberWorld(seed, EVENTS).run()
    except Exception as error:
        raise AssertionError(
            f"seed {seed}: python -m tests.harness.simulation.members --seeds {seed} --events {EVENTS} --trace"
        ) from error
