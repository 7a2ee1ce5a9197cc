"""Our coordinator against recordings of a real Kafka: walks of consumer groups, step by step."""

from __future__ import annotations

import pytest

from tests.harness.oracle.consumer.files import read, recording
from tests.harness.oracle.consumer.fresh import core_differences
from tests.harness.oracle.consumer.on_core import differences, play_walk, settings_of
from tests.harness.oracle.consumer.player import RESTART, WAIT
from tests.harness.oracle.consumer.recovery import RecoveringPlayer
from tests.harness.oracle.consumer.scenarios import SCENARIOS

# Steps after which a Kafka that has restarted differs from one that has not.
AFTER_A_RESTART = {
    # It judges again whether the subscriptions are all the same, as it has forgotten which topics it has seen.
    ("consumer", 31): 39,
}
# Steps at which a walk ends because Kafka does what it should not, by kind and seed.
ACCIDENTS = {
    # It assigns a partition that a classic member has not given up: its target was another one when the group became classic.
    ("migration", 20): 30,
}


@pytest.mark.parametrize(
    ("kind", "walks", "steps"),
    [
        ("consumer", 41, 1_646),
        ("large", 6, 762),
        ("max-size", 10, 366),
        ("migration", 41, 1_549),
        ("timed", 35, 1_045),
        ("scenarios", 37, 619),
        ("transactional", 23, 954),
    ],
)
def test_the_core_answers_and_stores_what_kafka_did_in_every_recorded_walk(kind: str, walks: int, steps: int) -> None:
    header, recorded = read(recording(kind))
    assert (len(recorded), sum(len(walk["steps"]) for walk in recorded)) == (walks, steps)
    different = [(walk["seed"], found) for walk in recorded for found in play_walk(walk, settings_of(header))]
    unknown = [str(found) for seed, found in different if f"step {ACCIDENTS.get((kind, seed))} " not in found.where]
    assert not unknown, "\n".join(unknown[:5])
    assert {(kind, seed) for seed, _ in different} == {key for key in ACCIDENTS if key[0] == kind}


@pytest.mark.parametrize(
    ("kind", "crashes"), [("consumer", 499), ("max-size", 114), ("migration", 425), ("transactional", 266)]
)
def test_a_core_that_crashes_at_random_continues_as_kafka_did(kind: str, crashes: int) -> None:
    header, recorded = read(recording(kind))
    found = 0
    for walk in recorded:
        player = RecoveringPlayer(walk, settings_of(header))
        where = [one.where for one in differences(walk, player)]
        step = (AFTER_A_RESTART | ACCIDENTS).get((kind, walk["seed"]))
        assert [f"step {step} " in one for one in where] == [True] * len(where), where
        assert bool(where) == (step is not None)
        found += player.crashes
    assert found == crashes


def test_a_core_that_restarts_when_kafka_did_continues_as_it_did() -> None:
    header, recorded = read(recording("restarts"))
    restarts = [step for walk in recorded for step in walk["steps"] if step["api"] == RESTART]
    assert (len(recorded), len(restarts)) == (6, 22)
    different = [found for walk in recorded for found in core_differences(header, walk)]
    assert not different, "\n".join(map(str, different[:5]))


def test_deadlines_are_missed_and_met_in_the_recorded_scenarios() -> None:
    walks = read(recording("scenarios"))[1]
    assert [walk["scenario"] for walk in walks] == [script.__name__ for script in SCENARIOS]
    removed = [any(step["api"] == WAIT and step["records"] for step in walk["steps"]) for walk in walks]
    assert (removed.count(True), removed.count(False)) == (30, 7)


def test_changed_answers_records_and_states_are_differences() -> None:
    header, walks = read(recording("large"))
    first = walks[0]["steps"][0]
    for part, changed in (
        ("answers", {"replies": []}),
        ("records", {"records": first["records"][1:]}),
        ("state after", {"state": {"$G1": {"type": "", "state": "Dead", "members": {}, "offsets": {}}}}),
    ):
        walk = {**walks[0], "steps": [first | changed]}
        [difference] = play_walk(walk, settings_of(header))
        assert difference.where == f"seed 1 step 1 ConsumerGroupHeartbeat v1: {part}"
