"""Fixtures: a running broker, and a client connected to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.certificates import Authority
from tests.harness.running import RunningBroker
from tests.harness.wire_client import WireClient


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningBroker]:
    with RunningBroker(tmp_path / "data") as broker:
        yield broker


@pytest.fixture
def running_small(tmp_path: Path) -> Iterator[RunningBroker]:
    """A broker that accepts requests of up to 1000 bytes."""
    with RunningBroker(tmp_path / "data", socket_request_max_bytes="1000") as broker:
        yield broker


@pytest.fixture
def client(running: RunningBroker) -> Iterator[WireClient]:
    with running.client() as connected:
        yield connected


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))
