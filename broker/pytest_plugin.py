"""pytest fixtures that start brokers: `local_kafka`, one for the whole run, and `fresh_kafka`, one for each test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from broker.local import LocalBroker


@pytest.fixture(scope="session")
def local_kafka() -> Iterator[LocalBroker]:
    """A broker that all tests of the run share; connect to `local_kafka.bootstrap_servers`."""
    from broker.local import LocalBroker

    with LocalBroker() as kafka:
        yield kafka


@pytest.fixture
def fresh_kafka() -> Iterator[LocalBroker]:
    """An empty broker of this test's own; it may be killed and restarted."""
    from broker.local import LocalBroker

    with LocalBroker() as kafka:
        yield kafka
