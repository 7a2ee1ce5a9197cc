"""Each scenario runs with each client that is installed."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tests.clients.adapters import CLIENTS, Client, client_named

# kafka-python 3.0.12 sometimes never takes up the partitions that it was given, on any broker: its group tests get another try.
HANGS = "kafka-python"
# The clients warn of their own use of Python; that is theirs to mend.
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
def leave_nothing_to_later_tests() -> Iterator[None]:
    """What a client forgot to close is found here, where its warnings are ignored, and not during another test."""
    yield
    gc.collect()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "/clients/" in str(item.path):
            for warning in THEIRS:
                item.add_marker(pytest.mark.filterwarnings(warning))
            if HANGS in item.name:
                item.add_marker(pytest.mark.flaky(reruns=2))
