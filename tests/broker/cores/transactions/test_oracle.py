"""The coordinator against recordings of a real Kafka: every walk, step by step, at each level of transaction.version."""

from __future__ import annotations

import pytest

from tests.harness.oracle.transactions.kafka import TRANSACTION_VERSIONS
from tests.harness.oracle.transactions.on_core import play_walk
from tests.harness.oracle.transactions.record import read, recording


@pytest.mark.parametrize(
    ("kind", "level", "least"),
    [*(("level", level, 140) for level in TRANSACTION_VERSIONS), ("exhausted", 1, 2), ("exhausted", 2, 8)],
)
def test_the_coordinator_answers_every_recorded_walk_as_kafka_did(kind: str, level: int, least: int) -> None:
    """The producers of the kind "exhausted" use up their epochs."""
    header, walks = read(recording(level, kind))
    assert header["transaction_version"] == level
    assert len(walks) >= least
    differences = [found for walk in walks for found in play_walk(walk, level)]
    assert not differences, "\n".join(map(str, differences[:5]))
