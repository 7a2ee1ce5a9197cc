"""What every room of tests may use: the running clusters, ours and (with the marker `reference`) a real Kafka."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.harness.clusters import Cluster

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell's background job ignores Ctrl-C, and so would every program that a test starts and interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)

BOTH = ["kgctl", pytest.param("kafka", marks=pytest.mark.reference)]


@pytest.fixture(scope="session", params=BOTH)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A running broker, ours and then a real one; tests share it and use names of their own."""
    with _started(request.param) as running:
        yield running


@pytest.fixture(params=BOTH)
def own_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """The same, for a test that kills it."""
    with _started(request.param) as running:
        yield running


@pytest.fixture(scope="session")
def our_cluster() -> Iterator[Cluster]:
    """Our broker alone."""
    with _started("kgctl") as running:
        yield running


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Who has a cluster of its own kills it and starts it again: at its port, which must be free by then."""
    for item in items:
        if "own_cluster" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.alone)


def _started(kind: str) -> contextlib.AbstractContextManager[Cluster]:
    from tests.harness import clusters
    from tests.harness.reference_kafka import Unavailable

    try:
        return clusters.start(kind)
    except Unavailable as reason:
        pytest.skip(f"no real Kafka: {reason}")
