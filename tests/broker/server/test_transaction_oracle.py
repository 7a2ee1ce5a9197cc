"""A running broker answers the recorded transactional walks of a real Kafka as Kafka did; and the oracle itself is complete."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.local import LocalBroker
from tests.harness.oracle.over_socket import address_of
from tests.harness.oracle.transactions import coverage, fresh, on_core
from tests.harness.oracle.transactions.kafka import SETTINGS, TRANSACTION_VERSIONS
from tests.harness.oracle.transactions.player import RESTART, WAIT, Address
from tests.harness.oracle.transactions.record import Recorded, read, record, recording, write
from tests.harness.oracle.transactions.replay import on_our_broker, play_walks
from tests.harness.reference_kafka import Unavailable

SEEDS = range(1, 8)
SAMPLE = 4  # walks at each level; all of them take too long
FRESH = 10  # walks at each level, from a real Kafka; restarting it takes too long


def takes_long(walk: Recorded) -> bool:
    return any(step["api"] in (RESTART, WAIT) for step in walk["steps"])


@pytest.mark.parametrize("level", TRANSACTION_VERSIONS)
def test_sampled_walks_are_answered_as_by_kafka(level: int) -> None:
    quick = [walk for walk in read(recording(level))[1] if not takes_long(walk)]
    found = on_our_broker(quick[:: len(quick) // SAMPLE], level)
    assert not found, "\n".join(map(str, found[:5]))


def test_walks_across_a_kill_are_answered_as_by_kafka() -> None:
    walks = read(recording(2))[1]
    restarting = [walk for walk in walks if any(step["api"] == RESTART for step in walk["steps"])]
    found = on_our_broker(restarting[:2], 2)
    assert not found, "\n".join(map(str, found[:5]))


@pytest.mark.reference
@pytest.mark.timeout(600)
@pytest.mark.parametrize("level", TRANSACTION_VERSIONS)
def test_a_real_kafka_answers_fresh_walks_as_we_do(level: int, tmp_path: Path) -> None:
    first = int(time.time())
    seeds = range(first, first + FRESH)
    try:
        verdict = fresh.record_and_check(seeds, level, tmp_path / "fresh.jsonl.xz", restarts=False)
    except Unavailable as reason:
        pytest.skip(f"no real Kafka: {reason}")
    assert len(verdict.walks) >= FRESH - 1
    assert not verdict.differences, "\n".join([f"seeds {seeds}", *verdict.lines()])


# ---- the oracle itself


@pytest.fixture(scope="module")
def our_broker() -> Iterator[Address]:
    with LocalBroker(config=SETTINGS) as kafka:
        yield address_of(kafka.bootstrap_servers)


@pytest.fixture(scope="module")
def walks(our_broker: Address) -> list[Recorded]:
    """Walks recorded from our own broker."""
    return record(our_broker, SEEDS, 2).walks


def never() -> None:
    raise AssertionError("these walks have no restart")


def test_a_seed_and_the_answers_determine_the_walk(our_broker: Address, walks: list[Recorded]) -> None:
    assert record(our_broker, SEEDS[:2], 2).walks == walks[:2]
    assert walks[0]["steps"] != walks[1]["steps"]


def test_a_recording_of_our_broker_has_no_differences(
    our_broker: Address, walks: list[Recorded], tmp_path: Path
) -> None:
    write(tmp_path / "ours.jsonl.xz", {"transaction_version": 2}, walks)
    read_back = read(tmp_path / "ours.jsonl.xz")[1]
    assert read_back == walks
    assert [found for walk in walks for found in on_core.play_walk(walk, 2)] == []
    assert play_walks(our_broker, walks[:2], never) == []


def test_one_altered_answer_is_found_on_the_core_and_over_a_socket(our_broker: Address, walks: list[Recorded]) -> None:
    altered = copy.deepcopy(walks[0])
    step = next(step for step in altered["steps"] if step["api"] == "InitProducerId" and step["response"]["error_code"])
    step["response"]["error_code"] += 1
    for found in (on_core.play_walk(altered, 2), play_walks(our_broker, [altered], never)):
        assert [one.expected for one in found] == [step["response"]]
        assert f"step {step['t']} InitProducerId" in found[0].where


def test_one_altered_state_is_found_over_a_socket(our_broker: Address, walks: list[Recorded]) -> None:
    altered = copy.deepcopy(walks[0])
    step = next(step for step in altered["steps"] if "$A-0" in step["state"])
    step["state"]["$A-0"][0] += 1
    [found] = play_walks(our_broker, [altered], never)
    assert found.where.startswith(f"seed {altered['seed']} step {step['t']} ")


def test_recordings_contain_every_request_in_every_state() -> None:
    walks = [walk for level in TRANSACTION_VERSIONS for walk in read(recording(level))[1][:70]]
    table = coverage.table(walks)
    for api in ("InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn", "TxnOffsetCommit", "Produce"):
        states = {state for (name, _), row in table.items() if name == api for state in row}
        assert set(coverage.STATES) <= states, api
    asked = {name for name, _ in table}
    assert {"WriteTxnMarkers", "DescribeProducers", "ListTransactions", "DeleteRecords", "DeleteTopics"} <= asked
    assert {RESTART, WAIT} <= asked
