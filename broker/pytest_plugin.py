"""pytest fixtures that start brokers: `local_kafka` and `secure_kafka`, one per test run, and `fresh_kafka`, one per test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from broker.local import LocalBroker


@pytest.fixture(scope="session")
def local_kafka() -> Iterator[LocalBroker]:
    """A broker that all tests of a run share; connect to `local_kafka.bootstrap_servers`."""
    from broker.local import LocalBroker

    with LocalBroker() as kafka:
        yield kafka


@pytest.fixture
def fresh_kafka() -> Iterator[LocalBroker]:
    """An empty broker for one test, which may kill and restart it."""
    from broker.local import LocalBroker

    with LocalBroker() as kafka:
        yield kafka


@pytest.fixture(scope="session")
def secure_kafka() -> Iterator[LocalBroker]:
    """A broker with TLS and SCRAM that all tests of a run share; see `client_properties`, `username` and `ca_file`."""
    from broker.local import LocalBroker

    with LocalBroker(security="SASL_SSL") as kafka:
        yield kafka
