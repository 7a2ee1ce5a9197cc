"""Our coordinator against the recordings of a real Kafka: every walk and every timed scenario, step by step."""

from __future__ import annotations

from typing import Any

import pytest

from tests.harness.oracle.replay import play_scenario, play_walk, read, settings_of

TIMED_HEADER, SCENARIOS = read("timed-4.1.jsonl")
# Recorded times are rounded to a tenth of a unit, and over a socket everything takes some milliseconds.
TOLERANCE = 0.06


@pytest.mark.parametrize(
    ("recording", "walks", "steps"), [("classic-4.1.jsonl.gz", 400, 12_989), ("max-size-4.1.jsonl.gz", 60, 1_893)]
)
def test_the_core_answers_every_recorded_walk_as_kafka_did(recording: str, walks: int, steps: int) -> None:
    header, recorded = read(recording)
    assert (len(recorded), sum(len(walk["steps"]) for walk in recorded)) == (walks, steps)
    differences = [found for walk in recorded for found in play_walk(walk, settings_of(header), header["topics"])]
    assert not differences, "\n".join(map(str, differences[:5]))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario["scenario"])
def test_every_timed_scenario_has_kafkas_answers_at_kafkas_times(scenario: dict[str, Any]) -> None:
    differences, _ = play_scenario(scenario, TIMED_HEADER, TOLERANCE)
    assert not differences, "\n".join(map(str, differences))


def test_all_timed_scenarios_are_recorded() -> None:
    assert len(SCENARIOS) == 39


def test_changed_missing_and_extra_answers_and_changed_states_are_differences() -> None:
    header, walks = read("classic-4.1.jsonl.gz")
    changed = [dict(step) for step in walks[0]["steps"]]
    first, second = [step for step in changed if len(step["replies"]) == 1][:2]
    first["replies"] = [
        {"to": first["replies"][0]["to"], "response": {"error_code": 999}},
        {"to": 77_777, "response": {}},
    ]
    second["replies"] = []
    changed[-1]["state"] = {}
    differences = play_walk({**walks[0], "steps": changed}, settings_of(header), header["topics"])
    assert [(found.expected, found.got is None) for found in differences] == [
        ({"error_code": 999}, False),
        ({}, True),
        (None, False),
        ({}, False),
    ]
