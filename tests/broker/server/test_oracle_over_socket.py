"""A running broker answers the recorded walks of a real Kafka as Kafka did, byte for byte."""

from __future__ import annotations

import pytest

from broker.local import LocalBroker
from tests.harness.oracle import replay
from tests.harness.oracle.over_socket import Address, address_of, make_topics, play_walk

# Play every Nth walk; all of them take too long.
EVERY = {"classic-4.1.jsonl.gz": 6, "max-size-4.1.jsonl.gz": 4}


def differences(recording: str, every: int) -> tuple[list[str], int]:
    header, walks = replay.read(recording)
    with LocalBroker(config=header["settings"]) as kafka:
        address: Address = address_of(kafka.bootstrap_servers)
        make_topics(address, header["topics"])
        chosen = walks[::every]
        return [str(found) for walk in chosen for found in play_walk(address, walk)], len(chosen)


@pytest.mark.parametrize("recording", EVERY)
def test_sampled_walks_are_answered_as_by_kafka(recording: str) -> None:
    found, played = differences(recording, EVERY[recording])
    assert played >= 15
    assert not found, "\n".join(found[:10])


@pytest.mark.reference
@pytest.mark.timeout(600)
@pytest.mark.parametrize("recording", EVERY)
def test_all_walks_are_answered_as_by_kafka(recording: str) -> None:
    found, _ = differences(recording, 1)
    assert not found, "\n".join(found[:10])
