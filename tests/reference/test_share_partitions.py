"""Kafka's SharePartition and ours do the same, in random walks that were never recorded."""

from __future__ import annotations

import random

from tests.harness.oracle.share_partition.kafka import KafkasPlayer, difference
from tests.harness.reference_kafka import KafkaTools

WALKS = 1500


def test_random_walks_have_kafkas_results_and_states(tools: KafkaTools) -> None:
    first = random.randrange(10**9)
    with KafkasPlayer() as kafka:
        for seed in range(first, first + WALKS):
            assert difference(kafka.walk(seed)) is None, f"seed {seed}"
