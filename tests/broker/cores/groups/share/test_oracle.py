"""Our coordinator against recordings of a real Kafka: walks of share groups, step by step, records byte by byte."""

from __future__ import annotations

from collections import Counter

from broker.protocol.api_keys import APIS
from tests.harness.oracle.share.files import RECORDING, TIMED, read
from tests.harness.oracle.share.on_core import differences, play_walk
from tests.harness.oracle.share.recovery import RecoveringPlayer
from tests.harness.oracle.share.scenarios import SCENARIOS

WALKS = read(RECORDING)


def test_the_core_answers_and_stores_what_kafka_did_in_every_recorded_walk() -> None:
    found = [difference for walk in WALKS for difference in play_walk(walk)]
    assert not found, "\n".join(map(str, found[:5]))


def test_a_core_that_crashes_at_random_continues_as_kafka_did() -> None:
    crashes = 0
    for walk in WALKS:
        player = RecoveringPlayer(walk)
        assert not differences(walk, player)
        crashes += player.crashes
    assert crashes == 429


def test_sessions_end_as_in_kafka_in_every_recorded_scenario() -> None:
    walks = read(TIMED)
    assert [walk["scenario"] for walk in walks] == [script.__name__ for script in SCENARIOS]
    ended = [step for walk in walks for step in walk["steps"] if "wait_ms" in step and step["records"]]
    assert len(ended) == 10
    assert not [difference for walk in walks for difference in play_walk(walk)]


def test_the_walks_are_of_all_kinds() -> None:
    steps = [step for walk in WALKS for step in walk["steps"]]
    asked = Counter(APIS[step["key"]].name for step in steps if "key" in step)
    codes = Counter(step["answer"].get("error_code") for step in steps if step["answer"])
    kinds = Counter(
        int(key[:4], 16) if value else -int(key[:4], 16) for step in steps for key, value in step["records"]
    )
    assert min(asked.values()) >= 10, asked
    assert min(codes[code] for code in (0, 25, 42, 68, 69, 110)) >= 10, codes
    assert min(kinds[sign * kind] for kind in (10, 13, 14) for sign in (1, -1)) >= 10, kinds
    assert min(kinds[kind] for kind in (11, 12, 15, -11, -12, -15)) >= 10, kinds


def test_changed_answers_and_records_are_differences() -> None:
    walk = WALKS[0]
    place = next(place for place, step in enumerate(walk["steps"]) if step["answer"] and step["records"])
    step = walk["steps"][place]
    for changed in ({"answer": {**step["answer"], "error_code": 1}}, {"records": step["records"][1:]}):
        steps = [*walk["steps"][:place], {**step, **changed}, *walk["steps"][place + 1 :]]
        (difference,) = play_walk({**walk, "steps": steps})
        assert f"step {place} " in difference.where
