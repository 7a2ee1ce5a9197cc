"""Walks of share groups over sockets: what members get and what is stored of it as a real Kafka did, and the group coordinator as its core."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest

from broker.local import LocalBroker
from tests.harness.oracle.over_socket import Address, address_of
from tests.harness.oracle.share.on_core import play_walk
from tests.harness.oracle.share.record import OurRecorder, record
from tests.harness.oracle.share_data.files import ALTERATION, RECORDING, play, read

WALKS = read(RECORDING)
UPDATE, START_OFFSET = 1, 5  # places in what is seen of a stored state


@pytest.fixture(scope="module")
def address() -> Iterator[Address]:
    with LocalBroker() as kafka:
        yield address_of(kafka.bootstrap_servers)


def test_members_get_and_the_broker_stores_what_kafka_did(address: Address) -> None:
    """Also the start offsets that DescribeShareGroupOffsets shows: as in Kafka, those of the last write."""
    assert (len(WALKS), sum(len(walk["steps"]) for walk in WALKS)) == (16, 856)
    differences = play(address, WALKS)
    assert not differences, "\n".join(map(str, differences[:5]))


def test_offsets_are_altered_as_by_kafka(address: Address) -> None:
    [walk] = read(ALTERATION)
    assert sum(step["move"][0] == "alter" for step in walk["steps"]) == 7
    differences = play(address, [walk])
    assert not differences, "\n".join(map(str, differences))


def test_changed_answers_offsets_and_states_are_differences(address: Address) -> None:
    for what, wrong in (("answer", [0, 1, []]), ("offsets", [0, []]), ("states", [])):
        walk = copy.deepcopy(WALKS[0])
        place = next(at for at, step in enumerate(walk["steps"]) if step["states"] and step["move"][0] != "beat")
        walk["steps"][place][what] = wrong
        [difference] = play(address, [{**walk, "steps": walk["steps"][: place + 1]}])
        assert difference.where.endswith(f": {what}")


def test_the_walks_are_of_all_kinds() -> None:
    steps = [step for walk in WALKS for step in walk["steps"]]
    moves = {step["move"][0] for step in steps}
    assert moves == {
        *("produce", "beat", "leave", "fetch", "acknowledge", "stray", "close", "drop"),
        *("delete", "truncate", "delete_group"),
    }
    errors = {row[1] for step in steps if step["move"][0] == "acknowledge" for row in step["answer"][1]}
    assert errors >= {0, 121}
    updates = [one for step in steps for one in step["states"] if one[UPDATE] == "update"]
    assert len({one[START_OFFSET] for one in updates}) > 10
    assert {state for one in updates for _, _, state, _ in one[-1]} == {0, 2, 4}


def test_the_group_coordinator_answers_and_stores_over_a_socket_as_its_core(address: Address) -> None:
    """Whose answers are those of Kafka."""
    walks = record(address, 1, 5, 45, OurRecorder)
    differences = [difference for walk in walks for difference in play_walk(walk)]
    assert not differences, "\n".join(map(str, differences[:5]))
