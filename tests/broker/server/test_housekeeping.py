"""Housekeeping of the log while the broker serves requests."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.cores.core import Effects
from broker.cores.groups.events import GroupEvent
from broker.cores.groups.records import GenerationFloor, OffsetCommitRecord, StateRecord
from broker.server import broker as server
from tests.harness.running import RunningBroker, until

WRITES = 20


def test_a_large_wal_moves_to_the_database_under_constant_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "SWEEP_DELAY_S", 0.0)
    records: list[StateRecord] = [
        GenerationFloor("g", 1),
        *(OffsetCommitRecord("g", "t", number, 1, -1, "m" * 30_000, 0, None) for number in range(100)),
    ]
    effects: Effects[StateRecord, GroupEvent] = Effects(records, [], None)
    sizes: list[int] = []

    with RunningBroker(tmp_path / "data") as running:

        def write() -> None:
            """Leave unflushed rows in every turn of the event loop, as clients that never pause do."""
            sizes.append((tmp_path / "data" / "store.db").stat().st_size)
            if len(sizes) < WRITES:
                running.broker.groups.runner.step(lambda: effects)
                running.call_soon(write)

        running.call_soon(write)
        until(lambda: len(sizes) == WRITES)
    assert sizes[-1] > sizes[0] + 8_000_000


def test_an_idle_broker_checks_for_logs_to_compact_at_the_interval_of_the_cleaner(tmp_path: Path) -> None:
    with RunningBroker(tmp_path, log_cleaner_backoff_ms="7000") as running:

        def next_sweep_s() -> float:
            timer = running.broker._sweep_timer
            assert timer is not None
            return timer.when() - running._loop.time()

        assert running.run(next_sweep_s) <= 7
        until(lambda: running.run(running.broker._sweep) or running.run(next_sweep_s) > 1)
        assert running.run(next_sweep_s) <= 7
