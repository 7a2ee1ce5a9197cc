"""Our coordinator against recordings of a real Kafka: walks of consumer groups, step by step."""

from __future__ import annotations

import pytest

from tests.harness.oracle.consumer.files import read, recording
from tests.harness.oracle.consumer.on_core import play_walk, settings_of

# Steps at which a walk ends because Kafka does what it should not, by kind and seed.
ACCIDENTS = {
    # A JoinGroup with a member id makes Kafka forget an Empty consumer group, without a record of that, so a restart brings it back.
    ("timed", 1): 9,
}


@pytest.mark.parametrize(
    ("kind", "walks", "steps"),
    [("consumer", 41, 1_646), ("large", 6, 762), ("max-size", 10, 366), ("migration", 41, 1_549), ("timed", 8, 335)],
)
def test_the_core_answers_and_stores_what_kafka_did_in_every_recorded_walk(kind: str, walks: int, steps: int) -> None:
    header, recorded = read(recording(kind))
    assert (len(recorded), sum(len(walk["steps"]) for walk in recorded)) == (walks, steps)
    differences = []
    for walk in recorded:
        found = play_walk(walk, settings_of(header))
        accident = ACCIDENTS.get((kind, walk["seed"]))
        if accident is not None:
            assert found[0].where.startswith(f"seed {walk['seed']} step {accident} "), found
        else:
            differences += found
    assert not differences, "\n".join(map(str, differences[:5]))


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
