"""Every input of a stateful Kafka Streams application is counted exactly once, whoever is killed."""

from __future__ import annotations

from pathlib import Path

from tests.harness.clusters import Cluster
from tests.harness.reference_kafka import KafkaTools
from tests.reference.streams import word_count


def test_every_word_is_counted_once_while_instances_and_the_broker_are_killed(
    tools: KafkaTools, own_cluster: Cluster, tmp_path: Path
) -> None:
    counts = word_count.run(own_cluster, tmp_path, 15, 7, print)
    assert counts.counted.total() > 1000
