"""Walks of consumer groups over sockets: those recorded from a real Kafka, and fresh ones; and the oracle itself."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.local import LocalBroker
from tests.harness.oracle.consumer import coverage, fresh, on_core
from tests.harness.oracle.consumer.files import Recorded, read, recording, write
from tests.harness.oracle.consumer.kafka import SETTINGS
from tests.harness.oracle.consumer.record import record
from tests.harness.oracle.consumer.replay import on_our_broker, play_walk
from tests.harness.oracle.consumer.topics import TopicSets
from tests.harness.oracle.over_socket import Address, address_of
from tests.harness.reference_kafka import Unavailable

SAMPLE = 5  # walks of each kind
FRESH = {"consumer": 12, "migration": 8, "transactional": 8}
SEEDS = range(1, 4)


@pytest.mark.parametrize("kind", ["consumer", "max-size", "migration", "transactional"])
def test_a_broker_answers_and_stores_what_kafka_did(kind: str) -> None:
    header, walks = read(recording(kind))
    # Topics of a walk of its own are created many times, until their ids have the right order.
    changing = [walk for walk in walks if walk["own_topics"]]
    others = [walk for walk in walks if not walk["own_topics"]]
    differences = on_our_broker(header, [*others[:SAMPLE], *changing[:1]])
    assert not differences, "\n".join(map(str, differences[:5]))


@pytest.mark.reference
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", FRESH)
def test_a_real_kafka_answers_fresh_walks_as_we_do(kind: str, tmp_path: Path) -> None:
    first = int(time.time())
    seeds = range(first, first + FRESH[kind])
    try:
        verdict = fresh.record_and_check(seeds, kind, tmp_path / "fresh.jsonl.xz")
    except Unavailable as reason:
        pytest.skip(f"no real Kafka: {reason}")
    assert len(verdict.walks) >= FRESH[kind] - 1
    assert not verdict.differences, "\n".join([f"seeds {seeds}", *verdict.lines()])


# ---- the oracle itself


@pytest.fixture(scope="module")
def our_broker() -> Iterator[Address]:
    with LocalBroker(config=SETTINGS["migration"]) as kafka:
        yield address_of(kafka.bootstrap_servers)


@pytest.fixture(scope="module")
def walks(our_broker: Address) -> list[Recorded]:
    """Walks recorded from our own broker."""
    return record(our_broker, SEEDS, "migration").walks


def test_a_seed_and_the_answers_determine_the_walk(our_broker: Address, walks: list[Recorded]) -> None:
    requests = [[(one["client"], one["api"], one["request"]) for one in walk["steps"]] for walk in walks]
    [again] = record(our_broker, [walks[0]["seed"]], "migration").walks
    if again["attempt"] == walks[0]["attempt"]:
        assert [(one["client"], one["api"], one["request"]) for one in again["steps"]] == requests[0]
    assert requests[0] != requests[1]


def test_a_recording_of_our_broker_has_no_differences(walks: list[Recorded], tmp_path: Path) -> None:
    header = {"settings": SETTINGS["migration"]}
    write(tmp_path / "ours.jsonl.xz", header, walks)
    read_header, read_walks = read(tmp_path / "ours.jsonl.xz")
    assert read_walks == walks
    settings = on_core.settings_of(read_header)
    assert [found for walk in walks for found in on_core.play_walk(walk, settings)] == []


def test_an_altered_answer_record_and_state_are_found_over_a_socket(our_broker: Address) -> None:
    _, [walk, *_] = read(recording("migration"))
    sets = TopicSets(our_broker)
    for part, what in (("replies", "answers"), ("records", "records"), ("state", "state after")):
        altered = copy.deepcopy(walk)
        step = next(one for one in altered["steps"] if one["records"])
        step[part] = {"$G1": {}} if part == "state" else step[part][1:]
        [difference] = play_walk(our_broker, altered, sets)
        assert difference.where == f"seed {walk['seed']} step {step['t']} {step['api']} v{step['version']}: {what}"


def test_recordings_contain_every_request_in_every_state() -> None:
    walks = [walk for kind in SETTINGS for walk in read(recording(kind))[1]]
    table = coverage.table(walks)
    states = {state for (name, _), row in table.items() if name == "ConsumerGroupHeartbeat" for state in row}
    assert states >= {"Dead", "classic Stable", coverage.MIXED, *(f"consumer {one}" for one in coverage.CONSUMER)}
    errors = {int(code) for name, code in table if name == "ConsumerGroupHeartbeat" and code.isdigit()}
    assert errors >= {0, 25, 42, 69, 81, 82, 110, 111, 112, 128}
    asked = {name for name, _ in table}
    assert {"CreateTopics", "CreatePartitions", "DeleteTopics", "OffsetCommit", "OffsetFetch", "OffsetDelete"} <= asked
    committed = {int(code) for name, code in table if name == "TxnOffsetCommit" and code.isdigit()}
    assert committed >= {0, 22, 25}
    assert ("OffsetFetch", "88") in table
    assert {"JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup"} <= asked
    assert set(coverage.member_states(walks)) == {0, 1, 2}
