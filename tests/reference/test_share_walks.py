"""Walks of share groups that nobody has seen before: our coordinator answers and stores what a Kafka does."""

from __future__ import annotations

import random
from pathlib import Path

from tests.harness.oracle.share.files import write
from tests.harness.oracle.share.on_core import play_walk
from tests.harness.oracle.share.record import record
from tests.harness.reference_kafka import KafkaTools, ReferenceKafka

WALKS, STEPS = 12, 45


def test_fresh_walks_have_no_differences(tools: KafkaTools, tmp_path: Path) -> None:
    first = random.randrange(10**9)
    with ReferenceKafka() as kafka:
        host, _, port = kafka.bootstrap_servers.rpartition(":")
        walks = record((host, int(port)), first, WALKS, STEPS)
    write(tmp_path / "walks.jsonl.xz", walks)
    differences = [difference for walk in walks for difference in play_walk(walk)]
    assert not differences, f"first seed {first}\n" + "\n".join(map(str, differences[:5]))
