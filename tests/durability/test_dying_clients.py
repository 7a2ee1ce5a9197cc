"""A short run of `make durability` part `connections`, with few clients."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.durability import connections
from tests.durability.parts import PARTS


def test_the_broker_lets_go_of_clients_that_end_behind_parked_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "CLIENTS", 50)
    monkeypatch.setattr(connections, "MEMBERS", 20)
    reported: list[str] = []
    figures = PARTS["connections"].run(tmp_path, 3, 3, reported.append)
    assert figures["clients"] == 150
    assert len(reported) == 3
