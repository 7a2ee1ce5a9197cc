"""All of this room needs java: Kafka's tools and, for half of the tests, a Kafka."""

from __future__ import annotations

import pytest

from tests.harness.reference_kafka import KafkaTools, Unavailable


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "/reference/" in str(item.path):
            item.add_marker(pytest.mark.reference)
            item.add_marker(pytest.mark.timeout(300))  # a JVM per question


@pytest.fixture(scope="session")
def tools() -> KafkaTools:
    try:
        return KafkaTools()
    except Unavailable as reason:
        pytest.skip(f"no Java tools of Kafka: {reason}")
