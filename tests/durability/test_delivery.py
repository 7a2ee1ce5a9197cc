"""A short run of `make durability` part `delivery`, and the long one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.durability import delivery
from tests.durability.parts import PARTS

FEW = 20_000


@pytest.mark.parametrize(
    ("records", "kills"),
    [
        pytest.param(FEW, 2, marks=pytest.mark.slow),
        pytest.param(delivery.RECORDS, 5, marks=[pytest.mark.soak, pytest.mark.timeout(1800)]),
    ],
)
def test_each_delivery_guarantee_holds_while_the_broker_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, records: int, kills: int
) -> None:
    monkeypatch.setattr(delivery, "RECORDS", records)
    reported: list[str] = []
    figures = PARTS["delivery"].run(tmp_path, 7, kills, reported.append)
    assert len(reported) == kills * len(delivery.GUARANTEES)
    assert {"exactly once", "at least once", "at most once"} <= figures.keys()
    print(figures)
