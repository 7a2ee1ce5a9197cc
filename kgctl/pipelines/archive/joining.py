"""Joins commits of an archive: their small files become large ones, with new checksums. Imports pyarrow, not Spark.

`tables.rewriting` does the changes of the disk: who reads the archive sees it before or after, wherever the writer dies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from kgctl.pipelines.archive.files import check_content, merge_files
from kgctl.pipelines.archive.join_plans import Join
from kgctl.pipelines.archive.layout import RECORDS, ArchivedFile
from kgctl.pipelines.archive.manifest import Archive, ArchiveWriter, Commit, commit_facts, commit_number
from kgctl.pipelines.tables.errors import Damaged
from kgctl.pipelines.tables.rewriting import AddedFile, Rewrite, begin_rewrite
from kgctl.pipelines.tables.state import CommittedFile, Fold, TableState


def join_all(writer: ArchiveWriter, plan: Callable[[Sequence[Commit]], Join | None], wait_s: float) -> Iterator[Join]:
    """Join commits until the plan has no more; yield what was done. What was done before an error stays done.

    Raises Busy if readers need the files for longer than `wait_s`, Damaged if a file is not what was committed, OSError.
    """
    while (found := plan(writer.archive.commits)) is not None:
        # A plan that makes no commit fewer would be made again and again.
        if len(found.commits) < 2:
            return
        table = writer.table
        staging = begin_rewrite(table.rewrites, table.fold().rewrite)
        try:
            merged = tuple(_merged(writer.archive, files, staging) for files in found.merges)
        except pa.ArrowInvalid as error:
            raise Damaged(f"{writer.archive.folder}: a file cannot be read ({error})") from error
        writer.rewrite(_joined(staging, found, merged), wait_s)
        yield found


def _merged(archive: Archive, files: tuple[ArchivedFile, ...], staging: Path) -> ArchivedFile:
    # A new checksum must not hide that a file was damaged before.
    for file in files:
        check_content(archive, file)
    merged = merge_files(archive, files, staging)
    records = sum(file.records for file in files)
    first, last = files[0].first_offset, max(file.last_offset for file in files)
    if (merged.records, merged.first_offset, merged.last_offset) != (records, first, last):
        raise Damaged(f"{archive.path_of(files[0])} and those after it do not hold the records that were committed")
    return merged


@dataclass(frozen=True, slots=True, kw_only=True)
class _JoinedRewrite(Rewrite):
    """Also puts one batch in the place of several. Paths of `merged` are relative to the staging folder."""

    plan: Join
    merged: tuple[ArchivedFile, ...]

    def next_fold(self, state: TableState) -> Fold:
        numbers = {number for commit in self.plan.commits for number in range(commit.first, commit.number + 1)}
        # By number: in the order of time, the last one may be another, if the clock was set back.
        batches = sorted(
            (batch for batch in state.batches if commit_number(batch.id) in numbers),
            key=lambda one: commit_number(one.id),
        )
        last = batches[-1]
        files = [file for batch in batches for file in batch.files if file.path not in self.removed]
        files += self.named(state)
        joined = replace(last, files=tuple(files), facts=self._facts(files))
        gone = {batch.id for batch in batches} - {last.id}
        fold = state.folded()
        stay = tuple(joined if one.id == last.id else one for one in fold.batches if one.id not in gone)
        return self.begun(replace(fold, batches=stay, known=fold.known.with_ids(gone)))

    def _facts(self, files: Sequence[CommittedFile]) -> dict[str, Any]:
        """In manifests, files have the names that they had in staging."""
        staged = {f"{RECORDS}/{file.path}": file.staged for file in files}
        addition = self.plan.addition(self.merged)
        named = tuple(replace(file, path=staged.get(file.path, file.path)) for file in addition.files)
        return commit_facts(replace(addition, files=named), self.plan.commits[0].first)


def _joined(staging: Path, plan: Join, merged: tuple[ArchivedFile, ...]) -> _JoinedRewrite:
    removed = frozenset(file.path.removeprefix(f"{RECORDS}/") for file in plan.merged)
    added = [AddedFile(file.path, file.records, 1) for file in merged]
    return _JoinedRewrite(staging, removed, added, plan=plan, merged=merged)
