"""Each scenario runs with each client that is installed."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tests.clients.adapters import CLIENTS, Client, client_named

# kafka-python 3.0.12 sometimes never starts fetching its assigned partitions, on any broker: rerun its tests.
HANGS = "kafka-python"
# Warnings about how the clients use Python are not ours to fix.
THEIRS = ("ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(params=list(CLIENTS))
def client_name(request: pytest.FixtureRequest) -> str:
    pytest.importorskip(
        {"confluent-kafka": "confluent_kafka", "kafka-python": "kafka"}.get(request.param, request.param)
    )
    return str(request.param)


@pytest.fixture
def client(client_name: str) -> Client:
    return client_named(client_name)


@pytest.fixture(autouse=True)
def collect_garbage(quick_collections: None) -> Iterator[None]:
    """Collect what a client did not close now, while its warnings are ignored, and not during another test."""
    yield
    gc.collect()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "/clients/" in str(item.path):
            for warning in THEIRS:
                item.add_marker(pytest.mark.filterwarnings(warning))
            # On Kafka, the kill only checks the test itself.
            if item.path.name == "test_killed_broker.py" and "[kafka-" in item.name and "reference" in item.keywords:
                item.add_marker(pytest.mark.soak)
            # What clients do in transactions on Kafka is checked with one of them.
            if item.path.name == "test_transactions.py" and "[kafka-" in item.name and "confluent" not in item.name:
                item.add_marker(pytest.mark.soak)
            # The kill cycles of `tests/durability` run a transactional librdkafka.
            if "transaction_continues_after_a_kill" in item.name and "aiokafka" not in item.name:
                item.add_marker(pytest.mark.soak)
            if HANGS in item.name:
                item.add_marker(pytest.mark.flaky(reruns=2))
