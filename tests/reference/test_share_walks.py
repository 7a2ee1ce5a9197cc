"""Walks of share groups that were never recorded: our coordinator and our broker answer and store what a Kafka does."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.local import LocalBroker
from tests.harness.oracle.over_socket import Address, address_of
from tests.harness.oracle.share.files import write
from tests.harness.oracle.share.on_core import play_walk
from tests.harness.oracle.share.record import record
from tests.harness.oracle.share_data import files as data
from tests.harness.reference_kafka import KafkaTools, ReferenceKafka

WALKS, STEPS = 12, 45
DATA_WALKS = 9


@pytest.fixture(scope="module")
def kafka(tools: KafkaTools) -> Iterator[Address]:
    with ReferenceKafka() as kafka:
        yield address_of(kafka.bootstrap_servers)


def test_fresh_walks_have_no_differences(kafka: Address, tmp_path: Path) -> None:
    first = random.randrange(10**9)
    walks = record(kafka, first, WALKS, STEPS)
    write(tmp_path / "walks.jsonl.xz", walks)
    differences = [difference for walk in walks for difference in play_walk(walk)]
    assert not differences, f"first seed {first}\n" + "\n".join(map(str, differences[:5]))


@pytest.mark.timeout(300)
def test_members_get_what_a_kafka_gives_them(kafka: Address, tmp_path: Path) -> None:
    first = random.randrange(10**9)
    walks = data.record(kafka, range(first, first + DATA_WALKS))
    data.write(tmp_path / "walks.jsonl.xz", walks)
    assert len(walks) >= DATA_WALKS // 2
    with LocalBroker() as broker:
        differences = data.play(address_of(broker.bootstrap_servers), walks)
    assert not differences, f"first seed {first}\n" + "\n".join(map(str, differences[:5]))
