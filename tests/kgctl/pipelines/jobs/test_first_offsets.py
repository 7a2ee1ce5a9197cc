"""Where a stream begins is asked once, whatever is written before its first batch is done."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from broker.local import LocalBroker
from kgctl.pipelines.catalog import JOBS
from kgctl.pipelines.jobs.checkpoint_files import DamagedCheckpoint
from kgctl.pipelines.jobs.checkpoints import claim
from kgctl.pipelines.jobs.first_offsets import FIRST, first_offsets
from kgctl.pipelines.settings import RunSettings
from tests.harness.commandline import Kgctl, fill

TIME_MS = 1_767_225_600_000


@pytest.fixture
def kgctl() -> Iterator[Kgctl]:
    with LocalBroker() as broker:
        kgctl = Kgctl(broker.bootstrap_servers)
        assert kgctl("topics", "create", "orders", "--partitions", "2").exit_code == 0
        fill(kgctl, "orders", [10, 20], TIME_MS)
        yield kgctl


def settings_for(kgctl: Kgctl, out: Path, since: str | int) -> RunSettings:
    return RunSettings(("decode",), str(kgctl.bootstrap), str(out), since=since)


@pytest.mark.parametrize(
    ("since", "first"),
    [("latest", {"0": 10, "1": 20}), (TIME_MS + 5, {"0": 5, "1": 5}), (TIME_MS + 15, {"0": 10, "1": 15})],
)
def test_records_that_are_written_before_the_first_batch_are_not_skipped(
    kgctl: Kgctl, tmp_path: Path, since: str | int, first: dict[str, int]
) -> None:
    settings = settings_for(kgctl, tmp_path, since)
    found = first_offsets(tmp_path / "decode", "orders", settings)
    assert json.loads(found or "") == {"orders": first}
    fill(kgctl, "orders", [3, 4], TIME_MS + 100)
    claim(tmp_path / "decode", JOBS["decode"], "cluster", settings)
    assert first_offsets(tmp_path / "decode", "orders", settings) == found


def test_nothing_is_kept_where_it_is_not_needed(kgctl: Kgctl, tmp_path: Path) -> None:
    settings = settings_for(kgctl, tmp_path, "earliest")
    assert first_offsets(tmp_path / "a", "orders", settings) is None
    assert first_offsets(tmp_path / "a", "orders", replace(settings, since="latest", source="kafka")) is None
    claim(tmp_path / "b", JOBS["decode"], "cluster", settings)
    assert first_offsets(tmp_path / "b", "orders", replace(settings, since="latest")) is None
    assert not list(tmp_path.rglob(FIRST))


@pytest.mark.parametrize("content", [b"{", b"\xff"])
def test_a_damaged_file_is_named(kgctl: Kgctl, tmp_path: Path, content: bytes) -> None:
    settings = settings_for(kgctl, tmp_path, "latest")
    first_offsets(tmp_path, "orders", settings)
    (tmp_path / FIRST).write_bytes(content)
    with pytest.raises(DamagedCheckpoint, match=FIRST):
        first_offsets(tmp_path, "orders", settings)
