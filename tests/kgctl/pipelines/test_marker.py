"""Checkpoints, tables, clusters and sources that do not belong together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kgctl.client.net.errors import Precondition
from kgctl.pipelines.jobs.marker import check, check_commits, claim
from kgctl.pipelines.settings import RunSettings


@pytest.fixture
def settings(tmp_path: Path) -> RunSettings:
    return RunSettings(("decode",), "a:1", str(tmp_path / "out"), checkpoint=str(tmp_path / "checkpoint"))


def test_a_checkpoint_keeps_its_name(settings: RunSettings) -> None:
    checkpoint = settings.checkpoint_dir / "decode"
    assert check(checkpoint, "decode", "c1", settings) is None
    name = claim(checkpoint, "decode", "c1", settings)
    assert claim(checkpoint, "decode", "c1", settings) == check(checkpoint, "decode", "c1", settings) == name
    assert claim(settings.checkpoint_dir / "rebalances", "rebalances", "c1", settings) != name


def test_another_cluster_is_refused_by_jobs_that_read_topics_and_by_those_that_read_tables(
    settings: RunSettings,
) -> None:
    checkpoint = settings.checkpoint_dir / "decode"
    check_commits("lag", "c2", settings)
    claim(checkpoint, "decode", "c1", settings)
    with pytest.raises(Precondition, match=r"read from another cluster \(c1, this one is c2\)"):
        claim(checkpoint, "decode", "c2", settings)
    with pytest.raises(Precondition, match=r"job lag: .*another cluster"):
        check_commits("lag", "c2", settings)
    check_commits("lag", "c1", settings)


def test_the_other_source_cannot_go_on(settings: RunSettings) -> None:
    checkpoint = settings.checkpoint_dir / "decode"
    claim(checkpoint, "decode", "c1", settings)
    with pytest.raises(Precondition, match="begun with --source kgctl"):
        claim(checkpoint, "decode", "c1", replace(settings, source="kafka"))


def test_a_checkpoint_is_not_used_for_other_tables(settings: RunSettings, tmp_path: Path) -> None:
    checkpoint = settings.checkpoint_dir / "decode"
    claim(checkpoint, "decode", "c1", settings)
    with pytest.raises(Precondition, match="would lack what it has read"):
        claim(checkpoint, "decode", "c1", replace(settings, out=str(tmp_path / "other")))


def test_a_folder_that_was_moved_with_its_checkpoint_goes_on(settings: RunSettings, tmp_path: Path) -> None:
    inside = replace(settings, checkpoint=None)
    name = claim(inside.checkpoint_dir / "decode", "decode", "c1", inside)
    (tmp_path / "out").rename(tmp_path / "moved")
    moved = replace(inside, out=str(tmp_path / "moved"))
    assert claim(moved.checkpoint_dir / "decode", "decode", "c1", moved) == name
