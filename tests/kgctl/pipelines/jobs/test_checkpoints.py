"""Checkpoints, tables, clusters and sources that do not match are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kgctl.client.net.errors import Precondition
from kgctl.pipelines.catalog import JOBS
from kgctl.pipelines.jobs.checkpoints import CLUSTER, OWNER, check, check_inputs, claim, set_read_until
from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.tables.manifest import TableFolder

DECODE, LAG, REBALANCES = (JOBS[name] for name in ("decode", "lag", "rebalances"))


@pytest.fixture
def settings(tmp_path: Path) -> RunSettings:
    return RunSettings(("decode",), "a:1", str(tmp_path / "out"), checkpoint=str(tmp_path / "checkpoint"))


def test_a_checkpoint_keeps_its_name(settings: RunSettings) -> None:
    checkpoint = settings.checkpoint_dir / "decode"
    assert check(checkpoint, DECODE, "c1", settings) is None
    name = claim(checkpoint, DECODE, "c1", settings)
    assert claim(checkpoint, DECODE, "c1", settings) == check(checkpoint, DECODE, "c1", settings) == name
    assert claim(settings.checkpoint_dir / "rebalances", REBALANCES, "c1", settings) != name


def test_streams_and_batch_jobs_refuse_another_cluster(
    settings: RunSettings,
) -> None:
    checkpoint = settings.checkpoint_dir / "decode"
    check_inputs(LAG, "c2", settings)
    claim(checkpoint, DECODE, "c1", settings)
    with pytest.raises(Precondition, match=r"read from another cluster \(c1, this one is c2\)"):
        claim(checkpoint, DECODE, "c2", settings)
    with pytest.raises(Precondition, match=r"job lag: .*another cluster"):
        check_inputs(LAG, "c2", settings)
    check_inputs(LAG, "c1", settings)


@pytest.mark.parametrize("name", ["skew", "retention", "compaction", "producers"])
def test_jobs_that_read_no_checkpoint_refuse_a_folder_of_another_cluster(settings: RunSettings, name: str) -> None:
    # Producers come after this job.
    settings = replace(settings, jobs=("transactions", name))
    check_inputs(JOBS[name], "c2", replace(settings, jobs=("decode", "transactions", name)))
    claim(settings.checkpoint_dir / "decode", DECODE, "c1", settings)
    set_read_until(settings.checkpoint_dir / "decode", 1_767_225_600_000)
    with pytest.raises(Precondition, match=rf"job {name}: .*another cluster \(c1, this one is c2\)"):
        check_inputs(JOBS[name], "c2", settings)
    check_inputs(JOBS[name], "c1", settings)


@pytest.mark.parametrize(
    "name", ["f_retention", "f_compaction", "f_producer", "f_member_skew", "f_lag", "health", "memberships"]
)
def test_a_folder_without_checkpoints_is_known_by_the_notes_in_its_tables(settings: RunSettings, name: str) -> None:
    with TableFolder(settings.table_dir(name)).writing() as writer:
        staging = writer.stage("retention-1")
        staging.mkdir()
        writer.commit("retention-1", staging, [], {CLUSTER: "c1"})
    for job in ("retention", "compaction"):
        with pytest.raises(Precondition, match=rf"job {job}: .*another cluster"):
            check_inputs(JOBS[job], "c2", settings)
        check_inputs(JOBS[job], "c1", settings)
    with pytest.raises(Precondition, match=r"job decode: .*another cluster"):
        claim(settings.checkpoint_dir / "decode", DECODE, "c2", settings)
    claim(settings.checkpoint_dir / "decode", DECODE, "c1", settings)


def test_what_is_damaged_elsewhere_in_the_folder_does_not_stop_a_job(settings: RunSettings) -> None:
    claim(settings.checkpoint_dir / "decode", DECODE, "c1", settings)
    (settings.checkpoint_dir / "decode" / OWNER).write_bytes(b"\xff")
    manifests = settings.table_dir("f_retention") / "_manifest"
    manifests.mkdir(parents=True)
    (manifests / "a.json").write_text("{")
    check_inputs(JOBS["compaction"], "c2", settings)


def test_the_other_source_is_refused(settings: RunSettings) -> None:
    checkpoint = settings.checkpoint_dir / "decode"
    claim(checkpoint, DECODE, "c1", settings)
    with pytest.raises(Precondition, match="made with --source kgctl"):
        claim(checkpoint, DECODE, "c1", replace(settings, source="kafka"))


def test_a_checkpoint_is_refused_for_other_tables(settings: RunSettings, tmp_path: Path) -> None:
    checkpoint = settings.checkpoint_dir / "decode"
    claim(checkpoint, DECODE, "c1", settings)
    with pytest.raises(Precondition, match="would lack the records that it has read"):
        claim(checkpoint, DECODE, "c1", replace(settings, out=str(tmp_path / "other")))


def test_a_folder_that_was_moved_with_its_checkpoint_is_accepted(settings: RunSettings, tmp_path: Path) -> None:
    inside = replace(settings, checkpoint=None)
    name = claim(inside.checkpoint_dir / "decode", DECODE, "c1", inside)
    (tmp_path / "out").rename(tmp_path / "moved")
    moved = replace(inside, out=str(tmp_path / "moved"))
    assert claim(moved.checkpoint_dir / "decode", DECODE, "c1", moved) == name
