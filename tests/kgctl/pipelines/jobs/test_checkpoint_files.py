"""Each damaged file of a checkpoint is named with the remedy, before Spark reads it."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from kgctl.client.net.errors import Precondition
from kgctl.pipelines.catalog import JOBS
from kgctl.pipelines.jobs.checkpoint_files import DamagedCheckpoint, verify, verify_state
from kgctl.pipelines.jobs.checkpoints import (
    OWNER,
    READ_UNTIL,
    batch_id,
    check,
    check_inputs,
    claim,
    read_until,
    set_read_until,
)
from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.tables.manifest import TableFolder
from tests.kgctl.pipelines.jobs.checkpoint import DAMAGES, make_checkpoint, sums_of, write

DECODE, LAG = JOBS["decode"], JOBS["lag"]
OTHER_OUT, REMOVE = "give another --out", "remove it"


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("has_sums", [True, False], ids=["checksums", "no-checksums"])
@pytest.mark.parametrize(
    ("path", "remedy"),
    [("metadata", OTHER_OUT), ("offsets/4", OTHER_OUT), ("offsets/3", OTHER_OUT), ("commits/4", REMOVE)],
)
def test_a_damaged_file_is_named(tmp_path: Path, path: str, remedy: str, damage: str, has_sums: bool) -> None:
    make_checkpoint(tmp_path, 5)
    verify(tmp_path, 4)
    DAMAGES[damage](tmp_path / path)
    if not has_sums:
        sums_of(tmp_path / path).unlink()
    if (path, damage) == ("commits/4", "missing"):
        # As after a kill between the batch and its commit: the batch is repeated, which the tables notice.
        verify(tmp_path, 4)
        return
    with pytest.raises(DamagedCheckpoint, match=f"{tmp_path / path} .*; .*{remedy}"):
        verify(tmp_path, 4)


@pytest.mark.parametrize("last_in_tables", [4, None])
def test_a_batch_without_its_offsets_is_noticed(tmp_path: Path, last_in_tables: int | None) -> None:
    make_checkpoint(tmp_path, 5)
    (tmp_path / "offsets" / "4").unlink()
    if last_in_tables is not None:
        (tmp_path / "commits" / "4").unlink()
    with pytest.raises(DamagedCheckpoint, match="offsets/4 is missing"):
        verify(tmp_path, last_in_tables)


@pytest.mark.parametrize("damage", [name for name in DAMAGES if name != "missing"])
def test_a_batch_that_was_only_planned_can_be_removed(tmp_path: Path, damage: str) -> None:
    make_checkpoint(tmp_path, 5, committed=4)
    verify(tmp_path, 3)
    DAMAGES[damage](tmp_path / "offsets" / "4")
    with pytest.raises(DamagedCheckpoint, match=r"offsets/4 .*; remove it: nothing was written from it"):
        verify(tmp_path, 3)
    with pytest.raises(DamagedCheckpoint, match=r"offsets/4 .*give another --out"):
        verify(tmp_path, 4)
    (tmp_path / "offsets" / "4").unlink()
    sums_of(tmp_path / "offsets" / "4").unlink()
    verify(tmp_path, 3)


@pytest.mark.parametrize("damage", [name for name in DAMAGES if name != "missing"])
def test_damaged_checksums_of_a_file_are_named(tmp_path: Path, damage: str) -> None:
    make_checkpoint(tmp_path, 2)
    sums = sums_of(tmp_path / "offsets" / "1")
    DAMAGES[damage](sums)
    with pytest.raises(DamagedCheckpoint, match="offsets/"):
        verify(tmp_path, 1)


def test_checksums_of_files_that_were_removed_are_removed_too(settings: RunSettings, checkpoint: Path) -> None:
    kept = sums_of(checkpoint / "offsets" / "1")
    gone = [sums_of(checkpoint / name) for name in ("commits/1", "offsets/2")]
    write(checkpoint / "offsets" / "2", b"v1\n{}\n{}")
    for name in ("commits/1", "offsets/2"):
        (checkpoint / name).unlink()
    claim(checkpoint, DECODE, "c1", settings)
    assert kept.exists()
    assert not any(one.exists() for one in gone)


def test_older_files_are_not_needed(tmp_path: Path) -> None:
    make_checkpoint(tmp_path, 5)
    for path in ("offsets/0", "offsets/2", "commits/3"):
        (tmp_path / path).unlink()
    verify(tmp_path, 4)


def test_a_new_checkpoint_is_whole(tmp_path: Path) -> None:
    verify(tmp_path, None)
    verify_state(tmp_path)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", ["5.zip", "3.zip", "4.changelog"])
def test_a_damaged_file_of_the_state_is_named(tmp_path: Path, name: str, damage: str) -> None:
    make_checkpoint(tmp_path, 5)
    folder = tmp_path / "state" / "0" / "1"
    for file in ["5.zip"] if name == "5.zip" else ["3.zip", "4.changelog", "5.changelog"]:
        snapshot(folder / file) if file.endswith(".zip") else write(folder / file, b"change" * 200)
    write(folder / "2.zip", b"old")
    verify_state(tmp_path)
    DAMAGES[damage](folder / name)
    if damage == "missing" and name == "3.zip":
        snapshot(folder / "2.zip")
        name = "3.changelog"
    with pytest.raises(DamagedCheckpoint, match=f"{folder / name} "):
        verify_state(tmp_path)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("has_sums", [True, False], ids=["checksums", "no-checksums"])
@pytest.mark.parametrize("name", ["v2/2", "metadata"])
def test_a_damaged_description_of_an_operator_is_named(tmp_path: Path, name: str, damage: str, has_sums: bool) -> None:
    make_checkpoint(tmp_path, 3)
    path, _ = operator(tmp_path, name)
    verify(tmp_path, 2)
    DAMAGES[damage](path)
    if not has_sums:
        sums_of(path).unlink()
    missing = path.with_name("0") if (name, damage) == ("v2/2", "missing") else path
    with pytest.raises(DamagedCheckpoint, match=f"{missing} .*; restore it"):
        verify(tmp_path, 2)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_schema_of_the_state_is_named(tmp_path: Path, damage: str) -> None:
    make_checkpoint(tmp_path, 3)
    _, schema = operator(tmp_path)
    DAMAGES[damage](schema)
    with pytest.raises(DamagedCheckpoint, match=f"{schema} .*; restore it"):
        verify(tmp_path, 2)


def test_a_stateful_checkpoint_that_was_moved_is_named_before_spark_looks_for_its_files(tmp_path: Path) -> None:
    made, moved = tmp_path / "made", tmp_path / "moved"
    make_checkpoint(made, 3)
    _, schema = operator(made)
    made.rename(moved)
    with pytest.raises(DamagedCheckpoint, match=f"{schema} is missing; .* moved to {moved}: move the folder back"):
        verify(moved, 2)
    moved.rename(made)
    verify(made, 2)


def test_an_operator_is_described_during_the_first_batch(tmp_path: Path) -> None:
    make_checkpoint(tmp_path, 1, committed=0)
    (tmp_path / "state" / "0" / "_metadata" / "v2").mkdir(parents=True)
    verify(tmp_path, None)


def operator(checkpoint: Path, name: str = "v2/2") -> tuple[Path, Path]:
    """The files that describe an operator and the schema of its state."""
    folder = checkpoint / "state" / "0"
    path, schema = folder / "_metadata" / name, folder / "_stateSchema" / "default" / "0_711c9591"
    write(schema, bytes(range(256)))
    store = {"storeName": "default", "stateSchemaFilePaths": [f"file:{schema}"]}
    info = {"operatorInfo": {"operatorId": 0, "operatorName": "transformWithState"}, "stateStoreInfo": [store]}
    write(path, f"v2\n{json.dumps(info)}".encode())
    return path, schema


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("has_sums", [True, False], ids=["checksums", "no-checksums"])
@pytest.mark.parametrize("name", ["3.zip", "SSTs/000008-a.sst"])
def test_a_damaged_snapshot_is_named(tmp_path: Path, name: str, damage: str, has_sums: bool) -> None:
    make_checkpoint(tmp_path, 3)
    folder = tmp_path / "state" / "0" / "0"
    snapshot(folder / "3.zip")
    verify_state(tmp_path)
    DAMAGES[damage](folder / name)
    if not has_sums:
        sums_of(folder / name).unlink()
    if (name, damage, has_sums) == ("SSTs/000008-a.sst", "garbage", False):
        verify_state(tmp_path)  # only RocksDB can notice it
        return
    with pytest.raises(DamagedCheckpoint, match=f"{folder / name} "):
        verify_state(tmp_path)


def snapshot(path: Path) -> None:
    """A snapshot as Spark's RocksDB state store writes it."""
    write(path.parent / "SSTs" / "000008-a.sst", b"sst" * 400)
    files = [{"localFileName": "000008.sst", "dfsSstFileName": "000008-a.sst", "sizeBytes": 1200}]
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("metadata", "v1\n" + json.dumps({"sstFiles": files, "numKeys": 0}))
        archive.writestr("MANIFEST-000005", bytes(range(256)) * 8)
    write(path, content.getvalue())


@pytest.fixture
def settings(tmp_path: Path) -> RunSettings:
    return RunSettings(("decode",), "a:1", str(tmp_path / "out"))


@pytest.fixture
def checkpoint(settings: RunSettings) -> Path:
    folder = settings.checkpoint_dir / "decode"
    claim(folder, DECODE, "c1", settings)
    make_checkpoint(folder, 2)
    return folder


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_of_kgctl_is_named(settings: RunSettings, checkpoint: Path, damage: str) -> None:
    DAMAGES[damage](checkpoint / OWNER)
    with pytest.raises(DamagedCheckpoint, match=f"{OWNER} .*; restore it"):
        check(checkpoint, DECODE, "c1", settings)


def test_a_batch_of_the_tables_without_its_offsets_is_noticed(settings: RunSettings, checkpoint: Path) -> None:
    name = check(checkpoint, DECODE, "c1", settings)
    assert name is not None
    for batch in (batch_id(name, 1), "decode-other-000009", batch_id(name, 2)):
        with TableFolder(settings.table_dir("commits")).writing() as writer:
            staging = writer.stage(batch)
            staging.mkdir()
            writer.commit(batch, staging, [], {"note": 1})
    with pytest.raises(DamagedCheckpoint, match="offsets/2 is missing"):
        check(checkpoint, DECODE, "c1", settings)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_job_does_not_guess_how_far_its_input_was_read(settings: RunSettings, checkpoint: Path, damage: str) -> None:
    alone = replace(settings, jobs=("lag",))
    set_read_until(checkpoint, 1_700_000_000_000)
    check_inputs(LAG, "c1", alone)
    DAMAGES[damage](checkpoint / READ_UNTIL)
    with pytest.raises(Precondition, match=f"{READ_UNTIL} .*run job decode"):
        check_inputs(LAG, "c1", alone)
    check_inputs(LAG, "c1", replace(settings, jobs=("decode", "lag")))
    set_read_until(checkpoint, 1_800_000_000_000)
    assert read_until(checkpoint) == 1_800_000_000_000
