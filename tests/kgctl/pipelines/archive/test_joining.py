"""Commits that are joined: by a run that follows, by `pipeline maintain`, beside readers, and with damaged files."""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.archive.join_plans import Join, all_small
from kgctl.pipelines.archive.joining import join_all
from kgctl.pipelines.archive.layout import Addition, records_folder
from kgctl.pipelines.archive.manifest import Commit, kept_in_place, read_archive, writing
from kgctl.pipelines.archive.verifying import verify
from kgctl.pipelines.tables import manifest
from kgctl.pipelines.tables.errors import Busy, Damaged
from kgctl.pipelines.tables.known_ids import KnownIds
from kgctl.pipelines.tables.manifest import TableFolder
from kgctl.pipelines.tables.merge_plans import TIER_FILES
from kgctl.pipelines.tables.state import fold_to_json
from tests.harness.clusters import Cluster
from tests.harness.commandline import Kgctl
from tests.harness.running import until
from tests.kgctl.pipelines.archive.clusters import against, archived, consumed, transact
from tests.kgctl.pipelines.archive.following import Following
from tests.kgctl.pipelines.archive.making import CLUSTER, NOON_MS, Row, add, facts
from tests.kgctl.pipelines.archive.model import join
from tests.kgctl.pipelines.archive.reading import in_folder, rows_of
from tests.kgctl.pipelines.source.topics import Topics

ZERO = TopicPartition("orders", 0)
DAY_MS = 86_400_000


def add_commits(folder: Path, count: int) -> list[Row]:
    rows = [Row(n, b"k", b"%d" % n, NOON_MS + n % 2 * DAY_MS, (("h", None),)) for n in range(2 * count)]
    for number in range(count):
        some = rows[2 * number : 2 * number + 2]
        add(folder, {ZERO: some}, {ZERO: (2 * number, 2 * number + 2)}, topics=[facts("orders")] if not number else [])
    return rows


def test_a_following_run_joins_its_small_commits(our_cluster: Cluster, tmp_path: Path) -> None:
    topics = Topics(our_cluster.bootstrap_servers)
    name = topics.make(2)
    topics.fill(name, [{"key": b"k", "value": None, "headers": [("a", None), ("a", b"")], "partition": 0}])
    transact(topics, name, "abort", "commit")
    with Following(topics, tmp_path, name) as run:
        until(lambda: run.records == 4)
        for count in range(1, TIER_FILES + 4):
            topics.count(name, 2, 2)
            until(lambda records=4 + 2 * count: run.records == records)
        until(lambda: len(read_archive(tmp_path).commits) < TIER_FILES)
    assert run.notes == []
    found = read_archive(tmp_path)
    assert found.commits[0].first == 0
    assert found.next_number > TIER_FILES
    assert len(found.files()) < 2 * TIER_FILES
    assert archived(tmp_path, name) == consumed(topics, name)
    assert verify(tmp_path).findings == ()
    assert against(topics, found) == []


def test_a_damaged_file_is_not_hidden_by_a_join_and_does_not_end_a_run(our_cluster: Cluster, tmp_path: Path) -> None:
    topics = Topics(our_cluster.bootstrap_servers)
    name = topics.make(1)
    with Following(topics, tmp_path, name) as run:
        topics.count(name, 1)
        until(lambda: run.records == 1)
        (file,) = (tmp_path / "records").rglob("*.parquet")
        file.write_bytes(file.read_bytes()[:-1] + b"?")
        for count in range(2, TIER_FILES + 3):
            topics.count(name, 1)
            until(lambda records=count: run.records == records)
    assert run.notes == [
        f"small files are not merged: {file}: the checksum is not that of the manifest; `kgctl pipeline verify` checks all files"
    ]
    assert [row.finding for row in verify(tmp_path).findings] == ["checksum"]


def test_maintain_merges_the_files_of_an_archive(tmp_path: Path) -> None:
    rows = add_commits(tmp_path, 5)
    before = in_folder(tmp_path)
    kgctl = Kgctl()
    (planned,) = kgctl.rows("pipeline", "maintain", "--out", tmp_path, "--merge")
    assert len(read_archive(tmp_path).commits) == 5
    (done,) = kgctl.rows("pipeline", "maintain", "--out", tmp_path, "--merge", "--execute")
    wanted = {"table": "records", "action": "merge", "days": 2, "files": 10, "files_after": 2, "rows": 10}
    assert {name: done[name] for name in wanted} == {name: planned[name] for name in wanted} == wanted
    assert kgctl.rows("pipeline", "maintain", "--out", tmp_path, "--merge", "--execute") == []
    archive = read_archive(tmp_path)
    assert (len(archive.commits), len(archive.files()), archive.next_number) == (1, 2, 5)
    assert rows_of(archive, ZERO) == rows
    assert rows_of(archive, ZERO, 3, 8) == rows[3:8]
    assert in_folder(tmp_path) == before
    # The next run continues behind it, and an older kgctl refuses what it would misunderstand.
    add(tmp_path, {ZERO: [Row(10)]}, {ZERO: (10, 11)})
    assert verify(tmp_path).findings == ()
    fold = json.loads((tmp_path / "records" / "_manifest" / ".fold.json").read_bytes())
    assert [(one["facts"]["format"], one["facts"]["first"]) for one in fold["batches"]] == [(2, 0)]


def test_maintain_drops_no_days_of_an_archive(tmp_path: Path) -> None:
    add_commits(tmp_path, 1)
    refused = Kgctl()("pipeline", "maintain", "--out", tmp_path, "--keep", "1d", "--execute")
    assert refused.exit_code == 6
    assert "an archive keeps all of its records" in refused.stderr


def _within(commits: Sequence[Commit], first: int, last: int) -> Join | None:
    return next(iter(all_small([one for one in commits if first <= one.first and one.number <= last])), None)


def test_joined_commits_are_joined_again(tmp_path: Path) -> None:
    rows = add_commits(tmp_path, 7)
    with writing(tmp_path) as writer:
        for first, last in ((0, 2), (3, 5)):
            assert len(list(join_all(writer, partial(_within, first=first, last=last), 0.0))) == 1
    assert [(one.first, one.number) for one in read_archive(tmp_path).commits] == [(0, 2), (3, 5), (6, 6)]
    assert join(tmp_path) == 1
    (commit,) = read_archive(tmp_path).commits
    assert (commit.first, commit.number) == (0, 6)
    assert rows_of(read_archive(tmp_path), ZERO) == rows


def test_a_join_waits_for_readers(tmp_path: Path) -> None:
    rows = add_commits(tmp_path, 3)
    with kept_in_place(tmp_path):
        archive = read_archive(tmp_path)
        with pytest.raises(Busy):
            join(tmp_path)
        assert rows_of(archive, ZERO) == rows
    assert join(tmp_path) == 1


def test_files_that_are_not_what_was_committed_are_not_joined(tmp_path: Path) -> None:
    add_commits(tmp_path, 3)
    files = sorted((tmp_path / "records").rglob("*.parquet"))
    files[1].unlink()
    with pytest.raises(Damaged, match="the file is missing"):
        join(tmp_path)
    assert len(read_archive(tmp_path).commits) == 3
    assert [row.finding for row in verify(tmp_path).findings] == ["missing file"]


def test_a_plan_that_changes_nothing_ends_the_joins(tmp_path: Path) -> None:
    add_commits(tmp_path, 2)
    with writing(tmp_path) as writer:
        assert list(join_all(writer, lambda commits: Join((commits[0],), ()), 0.0)) == []
        assert writer.table.fold().number == 0


@pytest.mark.parametrize("back", [1, 2, 3])
def test_commits_are_joined_by_number_although_the_clock_was_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, back: int
) -> None:
    times = iter([n - 3600 if n >= back else n for n in range(5)])
    monkeypatch.setattr(manifest.time, "time_ns", lambda: next(times) * 1_000_000_000)
    rows = add_commits(tmp_path, 4)
    assert join(tmp_path) == 1
    (commit,) = read_archive(tmp_path).commits
    assert (commit.first, commit.number, commit.committed_ms) == (0, 3, -3_597_000)
    assert rows_of(read_archive(tmp_path), ZERO) == rows
    add(tmp_path, {ZERO: [Row(8)]}, {ZERO: (8, 9)})
    assert [one.number for one in read_archive(tmp_path).commits] == [3, 4]
    assert verify(tmp_path).findings == ()


@pytest.mark.parametrize("named", [0, 2])
def test_a_run_continues_an_archive_whose_joined_commit_has_the_name_of_an_earlier_one(
    tmp_path: Path, named: int
) -> None:
    add_commits(tmp_path, 4)
    join(tmp_path)
    table = TableFolder(records_folder(tmp_path))
    fold = table.fold()
    others = KnownIds().with_ids(f"batch-{n:08d}" for n in range(4) if n != named)
    batches = (replace(fold.batches[0], id=f"batch-{named:08d}"),)
    (table.manifests / ".fold.json").write_bytes(fold_to_json(replace(fold, batches=batches, known=others)))
    assert verify(tmp_path).findings == ()
    add(tmp_path, {ZERO: [Row(8)]}, {ZERO: (8, 9)})
    assert [(one.first, one.number) for one in read_archive(tmp_path).commits] == [(0, 3), (4, 4)]
    assert join(tmp_path) == 1
    add(tmp_path, {ZERO: [Row(9)]}, {ZERO: (9, 10)})
    assert [(one.first, one.number) for one in read_archive(tmp_path).commits] == [(0, 4), (5, 5)]
    assert verify(tmp_path).findings == ()


def test_a_commit_that_the_manifest_already_has_is_an_error(tmp_path: Path) -> None:
    add_commits(tmp_path, 2)
    table = TableFolder(records_folder(tmp_path))
    with writing(tmp_path) as writer:
        writer.archive = replace(writer.archive, commits=writer.archive.commits[:1])
        with pytest.raises(Damaged, match="the manifest already has it"):
            writer.commit(lambda _: [], lambda _: Addition(CLUSTER, "read_committed"))
    assert len(read_archive(tmp_path).commits) == 2
    assert list(table.staging.iterdir()) == []


def test_a_run_keeps_one_fold_in_memory(tmp_path: Path) -> None:
    folds = []
    add_commits(tmp_path, 1)
    for at in range(2, 6):
        add(tmp_path, {ZERO: [Row(at)]}, {ZERO: (at, at + 1)})
        with writing(tmp_path) as writer:
            list(join_all(writer, lambda commits: next(iter(all_small(commits)), None), 0.0))
            fold = writer.table.fold()
            assert writer.table.fold() is fold
            folds.append(weakref.ref(fold))
            del fold
    assert folds[-1]() is not None
    gc.collect()
    assert [one() for one in folds[:-1]] == [None] * 3


def test_a_damaged_fold_is_a_fault(tmp_path: Path) -> None:
    add_commits(tmp_path, 3)
    join(tmp_path)
    fold = tmp_path / "records" / "_manifest" / ".fold.json"
    fold.write_bytes(fold.read_bytes().replace(b'"start":0', b'"start":1'))
    (row,) = verify(tmp_path).findings
    assert row.finding == "manifest"
    assert str(fold) in row.detail
