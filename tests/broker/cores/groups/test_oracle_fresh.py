"""The oracle itself: walks depend on seed and answers alone, recordings are complete, and every difference is found."""

from __future__ import annotations

import copy
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.local import LocalBroker
from tests.harness import ROOT
from tests.harness.oracle import coverage, fresh, over_socket, replay
from tests.harness.oracle.choices import Dropped, FreeChoices
from tests.harness.oracle.fresh import SETTINGS, Walk, on_core
from tests.harness.oracle.over_socket import Address, address_of
from tests.harness.oracle.record import record, write
from tests.harness.oracle.requests import BY_NAME, TOPICS
from tests.harness.reference_kafka import Unavailable

HEADER = {"settings": SETTINGS["classic"], "topics": TOPICS}
SEEDS = range(1, 8)
Join = tuple[dict[str, Any], dict[str, Any]]


@pytest.fixture(scope="module")
def our_broker() -> Iterator[Address]:
    with LocalBroker(config=SETTINGS["classic"]) as kafka:
        yield address_of(kafka.bootstrap_servers)


@pytest.fixture(scope="module")
def walks(our_broker: Address) -> list[Walk]:
    """Walks recorded from our own broker."""
    return record(our_broker, SEEDS).walks


def test_a_seed_and_the_answers_determine_the_walk(our_broker: Address, walks: list[Walk]) -> None:
    again = record(our_broker, SEEDS[:2]).walks
    assert again == walks[:2]
    assert walks[0]["steps"] != walks[1]["steps"]


def test_a_recording_of_our_broker_has_no_differences_on_the_core_or_over_a_socket(
    our_broker: Address, walks: list[Walk], tmp_path: Path
) -> None:
    write(tmp_path / "ours.jsonl.gz", walks, SETTINGS["classic"], "ourselves")
    header, read = replay.read(str(tmp_path / "ours.jsonl.gz"))
    assert read == walks
    assert len(walks) >= len(SEEDS) - 1
    assert on_core(header, walks) == []
    assert [found for walk in walks[:4] for found in over_socket.play_walk(our_broker, walk)] == []


def test_walks_contain_every_request_and_reach_every_state(walks: list[Walk]) -> None:
    asked = {step["api"] for walk in walks for step in walk["steps"]}
    group_requests = {name for name, api in BY_NAME.items() if api.key in {*range(8, 17), 42, 47}}
    assert asked == group_requests
    states = {group["state"] for walk in walks for step in walk["steps"] for group in step["state"].values()}
    assert states == set(coverage.STATES)
    groups = [group for walk in walks for step in walk["steps"] for group in step["state"].values()]
    assert max(len(group["members"]) for group in groups if group["state"] == "Stable") >= 3
    assert any("parked" in key for key in coverage.table(walks))


def test_one_altered_answer_is_found_on_the_core_and_over_a_socket(our_broker: Address, walks: list[Walk]) -> None:
    altered = copy.deepcopy(walks[0])
    step = next(step for step in altered["steps"] if step["api"] == "Heartbeat" and step["replies"])
    reply = next(reply for reply in step["replies"] if reply["to"] == step["t"])
    reply["response"]["error_code"] += 1
    for found in (on_core(HEADER, [altered]), over_socket.play_walk(our_broker, altered)):
        assert [one.expected for one in found] == [reply["response"]]
        assert f"step {step['t']} Heartbeat" in found[0].where


def test_a_recording_without_walks_counts_as_a_failure(walks: list[Walk], tmp_path: Path) -> None:
    for written, status in ((walks[:1], 0), ([], 1)):
        write(tmp_path / "few.jsonl.gz", written, SETTINGS["classic"], "ourselves")
        command = [sys.executable, "-m", "tests.harness.oracle", "check", str(tmp_path / "few.jsonl.gz")]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stdout + done.stderr


def joined(member: str, leader: str, protocols: tuple[str, ...]) -> Join:
    request = {"group_id": "$G1", "member_id": member, "protocols": [{"name": name} for name in protocols]}
    return request, {"error_code": 0, "leader": leader, "member_id": member}


def seen(choices: FreeChoices, members: list[str], *answers: Join, state: str = "Stable") -> None:
    asked = {number: {"api": "JoinGroup", "request": request} for number, (request, _) in enumerate(answers)}
    outcome = {
        "replies": [{"to": number, "response": response} for number, (_, response) in enumerate(answers)],
        "state": {"$G1": {"state": state, "members": [{"member": one, "instance": None} for one in members]}},
    }
    choices.judge({"api": "Heartbeat", "request": {"group_id": "$G1"}}, outcome, asked)


def test_a_tied_vote_is_not_compared() -> None:
    agree, tie = ("range", "sticky"), ("sticky", "range")
    seen(FreeChoices(["$G1"]), ["$M1", "$M2"], joined("$M1", "$M1", agree), joined("$M2", "$M1", agree))
    with pytest.raises(Dropped, match="tied"):
        seen(FreeChoices(["$G1"]), ["$M1", "$M2"], joined("$M1", "$M1", agree), joined("$M2", "$M1", tie))


def test_a_different_leader_is_a_difference_unless_kafka_chooses_freely() -> None:
    def after_the_leader_left(leader: str) -> None:
        choices = FreeChoices(["$G1"])
        seen(choices, ["$M1", "$M2", "$M3"], joined("$M1", "$M1", ("range",)))
        seen(choices, ["$M2", "$M3"], state="PreparingRebalance")
        seen(choices, ["$M2", "$M3"], joined("$M2", leader, ("range",)))

    after_the_leader_left("$M2")
    with pytest.raises(Dropped, match="leader"):
        after_the_leader_left("$M3")
    stayed = FreeChoices(["$G1"])
    seen(stayed, ["$M1", "$M2"], joined("$M1", "$M1", ("range",)))
    seen(stayed, ["$M1", "$M2"], joined("$M1", "$M2", ("range",)))


@pytest.mark.reference
@pytest.mark.timeout(300)
@pytest.mark.parametrize("variant", SETTINGS)
def test_a_real_kafka_answers_fresh_walks_as_we_do(variant: str, tmp_path: Path) -> None:
    first = int(time.time())
    seeds = range(first, first + (25 if variant == "classic" else 10))
    try:
        verdict = fresh.record_fresh(seeds, variant, tmp_path / "fresh.jsonl.gz")
    except Unavailable as reason:
        pytest.skip(f"no real Kafka: {reason}")
    assert len(verdict.walks) >= len(seeds) - 2
    assert not verdict.differences, "\n".join([f"seeds {seeds}", *verdict.lines()])
