from __future__ import annotations

from collections.abc import Iterator

import pytest

from broker.local import LocalBroker
from tests.kgctl.pipelines.source.topics import Topics


@pytest.fixture(scope="session")
def topics() -> Iterator[Topics]:
    """On our own broker, which keeps records of any age."""
    with LocalBroker({"log.retention.ms": -1}) as kafka:
        yield Topics(kafka.bootstrap_servers)


@pytest.fixture(scope="session")
def kafka_topics() -> Iterator[Topics]:
    """On a real Kafka."""
    from tests.harness import clusters
    from tests.harness.reference_kafka import Unavailable

    try:
        started = clusters.start("kafka")
    except Unavailable as reason:
        pytest.skip(f"no real Kafka: {reason}")
    with started as kafka:
        yield Topics(kafka.bootstrap_servers)
