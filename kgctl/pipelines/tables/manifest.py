"""The manifest of a table folder: a change is made as a whole or not at all, whenever its writer dies. Does not import Spark.

OUT/<table>/_manifest/<batch>.json       the rename of this file commits a batch; the first commit of a batch id wins
OUT/<table>/_manifest/.fold.json         what all older manifests said; its rename also commits a rewrite (rewriting.py)
OUT/<table>/_manifest/lock               held while a process writes
OUT/<table>/_manifest/readers            shared by readers that need the files to stay; see `reading`
OUT/<table>/date=.../<batch>-<n>.parquet the files, renamed to these names after the commit
OUT/_staging/<table>/<batch>-<random>/   files being written; not below the table, because the globs of DuckDB and Polars
                                         search every folder, whatever its name

Between the commit and the last rename, a reader of the manifest finds files in staging. A reader of the folder does not
see them yet; the next writer finishes the renames.

Readers list the manifests, then read the fold, then the manifests that the fold lacks. A fold deletes manifests only
after its rename, so a reader that misses one reads again and finds it in the fold.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from kgctl.pipelines.tables.durable import hold, lock_within, make_folder, sync, sync_tree, write_durably
from kgctl.pipelines.tables.errors import Busy, Damaged, Newer
from kgctl.pipelines.tables.rewriting import Rewrite, finish_rewrite, refuse_folders, restore_days, set_aside
from kgctl.pipelines.tables.state import (
    Batch,
    CommittedFile,
    Fold,
    Note,
    StagedFile,
    TableState,
    batch_from_json,
    batch_to_json,
    fold_from_json,
    fold_to_json,
)

__all__ = [
    "Batch",
    "Busy",
    "CommittedFile",
    "Damaged",
    "Newer",
    "Note",
    "StagedFile",
    "TableFolder",
    "Writer",
    "held_by_one_run",
]

STAGING, MANIFEST, LOCK, READERS = "_staging", "_manifest", "lock", "readers"
# No batch id begins with a dot.
FOLD = ".fold.json"
# Files of rewrites have this prefix, batch ids may not.
MERGED = "merged-"
# A commit folds the manifests if it finds this many.
FOLD_AT = 64
# How long a reader waits for a live writer to rename its files after the commit.
SETTLE_S, _POLL_S = 0.2, 0.01
_BATCH_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._=-]{0,180}")


class TableFolder:
    """One table's folder; it need not exist. Reading takes no lock."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manifests = folder / MANIFEST
        self.staging = folder.parent / STAGING / folder.name
        # No table has such a name, and no writer of batches cleans up there.
        self.rewrites = folder.parent / STAGING / f"{folder.name}+rewrite"

    def state(self) -> TableState:
        """What is committed now. Raises Damaged, Newer."""
        while True:
            names = self.loose()
            fold = self.fold()
            try:
                loose = [_read_batch(self.manifests / f"{name}.json") for name in names if name not in fold]
            except FileNotFoundError:
                continue
            return TableState(fold, tuple(sorted(loose, key=lambda batch: (batch.committed_ms, batch.id))))

    def batch(self, batch_id: str) -> Batch | None:
        """The committed batch with this id; None also if others have its rows now. Raises Damaged, Newer."""
        try:
            return _read_batch(self.manifest_of(batch_id))
        except (FileNotFoundError, NotADirectoryError):
            return next((batch for batch in self.fold().batches if batch.id == batch_id), None)

    def rows(self) -> int:
        return self.state().rows

    def files(self) -> list[Path]:
        """The current paths of all committed files. Raises Damaged if one is missing or truncated.

        A merge or a retention may delete them at any time; see `reading`.
        """
        return [path for path, _ in self.located()]

    def located(self) -> list[tuple[Path, CommittedFile]]:
        """`files`, each with what was committed."""
        deadline = time.monotonic() + SETTLE_S
        while True:
            state = self.state()
            found = [(self._current(state, file), file) for file in state.files]
            is_last = time.monotonic() >= deadline
            if is_last or all(path == self.folder / file.path for path, file in found):
                try:
                    return [(_checked(path, file), file) for path, file in found]
                except FileNotFoundError as missing:
                    if is_last:
                        raise Damaged(f"{missing.filename}: the file of a committed batch is missing") from None
            time.sleep(_POLL_S)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Keep files where they are: merges and retention wait. Commits do not."""
        try:
            descriptor = self._open_readers()
        except OSError:
            # There is no table; or an older kgctl wrote it, and this process may not write here.
            yield
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            yield
        finally:
            os.close(descriptor)

    def _open_readers(self) -> int:
        path = self.manifests / READERS
        try:
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    @contextmanager
    def writing(self, wait_s: float = 0.0) -> Iterator[Writer]:
        """Lock the table and finish what an earlier writer left. Raises Busy, Damaged, Newer."""
        make_folder(self.manifests)
        lock = hold(self.manifests / LOCK, self.folder, "is writing to this table", wait_s)
        try:
            self._recover()
            yield self.write()
        finally:
            os.close(lock)

    def refuse_merge(self) -> None:
        """Raises Precondition if the files of tables in this format cannot be merged."""

    def write(self) -> Writer:
        """For a table that is locked."""
        return Writer(self)

    def loose(self) -> list[str]:
        """The ids of the batches with a manifest of their own."""
        try:
            names = os.listdir(self.manifests)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [name.removesuffix(".json") for name in names if name.endswith(".json") and name != FOLD]

    def rename_files(self, batch: Batch) -> None:
        """Move the files of a committed batch out of staging, except those that are moved already."""
        staging = self.staging / batch.staging
        for file in batch.files:
            source, target = staging / file.staged, self.folder / file.path
            if source.exists():
                make_folder(target.parent)
                os.replace(source, target)
            elif not target.exists():
                raise Damaged(f"{target}: the file of a committed batch is missing")
        # The staging folder may go only after the new names are synced.
        for folder in sorted({(self.folder / file.path).parent for file in batch.files}):
            sync(folder)
        shutil.rmtree(staging, ignore_errors=True)

    def fold(self) -> Fold:
        """What is committed up to the newest fold. Raises Damaged, Newer."""
        path = self.manifests / FOLD
        try:
            stat = os.stat(path)
            return _fold_file(path).read((stat.st_ino, stat.st_mtime_ns, stat.st_size))
        except (FileNotFoundError, NotADirectoryError):
            return Fold()

    def manifest_of(self, batch_id: str) -> Path:
        if not _BATCH_ID.fullmatch(batch_id) or batch_id.startswith(MERGED):
            raise ValueError(
                f"{batch_id!r} is not a batch id: use letters and digits, and . _ = - after the first character, "
                f"and another beginning than {MERGED}"
            )
        return self.manifests / f"{batch_id}.json"

    def _recover(self) -> None:
        fold = self.fold()
        for name in os.listdir(self.manifests):
            if name.endswith(".new") or (
                name != FOLD and name.endswith(".json") and name.removesuffix(".json") in fold
            ):
                os.unlink(self.manifests / name)
        self.finish_rewrite(fold)
        try:
            left = os.listdir(self.staging)
        except FileNotFoundError:
            return
        for name in left:
            # The batch id may contain the separator; the random part does not.
            manifest = self.manifests / f"{name.rpartition('-')[0]}.json"
            batch = _read_batch(manifest) if manifest.exists() else None
            if batch is not None and batch.staging == name:
                self.rename_files(batch)
            else:
                shutil.rmtree(self.staging / name, ignore_errors=True)

    def finish_rewrite(self, fold: Fold) -> bool:
        """Whether the folder is as the newest rewrite wants it; False while others read. The caller holds the lock."""
        if fold.rewrite is None or not (self.rewrites / fold.rewrite).exists():
            return True
        restore_days(self.folder, self.rewrites / fold.rewrite)
        with self.without_readers() as is_alone:
            if is_alone:
                finish_rewrite(self.folder, self.rewrites / fold.rewrite, fold)
        return is_alone

    @contextmanager
    def without_readers(self, wait_s: float = 0.0) -> Iterator[bool]:
        """Whether no reader needs the files to stay; new ones wait until the end. The caller holds the lock."""
        descriptor = self._open_readers()
        try:
            yield lock_within(descriptor, wait_s)
        finally:
            os.close(descriptor)

    def _current(self, state: TableState, file: CommittedFile) -> Path:
        """Where the file is: under its name, else in the staging folder of its batch or of the newest rewrite."""
        target = self.folder / file.path
        if target.exists():
            return target
        sources = [self.staged(state.fold, file, next((batch for batch in state.loose if file in batch.files), None))]
        if state.fold.rewrite is not None:
            # First: in older tables, files of several rewrites have the same staged name.
            sources.insert(0, set_aside(self.rewrites / state.fold.rewrite, file.path))
        return next((source for source in sources if source is not None and source.exists()), target)

    def staged(self, fold: Fold, file: CommittedFile, batch: Batch | None) -> Path | None:
        """Where the file of a loose batch, or of the fold, is until it has its name."""
        if batch is not None:
            return self.staging / batch.staging / file.staged
        return None if fold.rewrite is None else self.rewrites / fold.rewrite / file.staged


class Writer:
    """Writes to a locked table; see TableFolder.writing."""

    def __init__(self, table: TableFolder) -> None:
        self._table = table

    def stage(self, batch_id: str) -> Path:
        """The path of a new staging folder, which the caller creates; its parent exists."""
        self._table.manifest_of(batch_id)
        make_folder(self._table.staging)
        return self._table.staging / f"{batch_id}-{uuid.uuid4().hex[:12]}"

    def discard(self, staging: Path) -> None:
        shutil.rmtree(staging, ignore_errors=True)

    def commit(
        self,
        batch_id: str,
        staging: Path,
        files: Sequence[StagedFile],
        notes: Mapping[str, Note] | None = None,
        facts: Mapping[str, Any] | None = None,
        schema: int = 1,
    ) -> bool:
        """Return True if the files are now part of the table, False if the batch was committed before; then they are deleted."""
        manifest = self._table.manifest_of(batch_id)
        if manifest.exists() or batch_id in self._table.fold():
            self.discard(staging)
            return False
        sync_tree(staging, [file.path for file in files])
        batch = Batch(
            id=batch_id,
            committed_ms=time.time_ns() // 1_000_000,
            staging=staging.name,
            files=self.named(batch_id, staging, files, schema),
            notes=dict(notes or {}),
            facts=dict(facts or {}),
        )
        write_durably(manifest, batch_to_json(batch))
        self._table.rename_files(batch)
        # A fold would write all facts again and again.
        if not batch.facts and len(self._table.loose()) >= FOLD_AT:
            self.fold()
        return True

    def named(
        self, batch_id: str, staging: Path, files: Sequence[StagedFile], schema: int
    ) -> tuple[CommittedFile, ...]:
        """The files with the names that they get in the table's folder."""
        return tuple(
            CommittedFile(
                path=f"{file.path.rpartition('/')[0]}/{batch_id}-{number}.parquet",
                staged=file.path,
                rows=file.rows,
                size=os.stat(staging / file.path).st_size,
                schema=schema,
            )
            for number, file in enumerate(sorted(files, key=lambda file: file.path))
        )

    def fold(self) -> None:
        """Put all manifests into one file: a reader of ten thousand batches reads one."""
        self._replace_fold(self._table.state().folded())

    def rewrite(self, rewrite: Rewrite, wait_s: float = 0.0) -> None:
        """Replace files by others in one step. Raises Busy if readers need the files for longer than `wait_s`.

        Readers of the manifest see all of the old files or all of the new ones. Readers of the folder see each day
        before or after; one that has listed a day before may find that a file is gone when it opens it.
        """
        table = self._table
        state = table.state()
        known = {file.path for file in state.files}
        if not rewrite.removed <= known:
            raise ValueError("the table has changed since the rewrite was planned")
        refuse_folders(table.folder, rewrite)
        with table.without_readers(wait_s) as is_alone:
            if not is_alone:
                raise Busy(f"{table.folder}: a process reads this table; try again when it has ended")
            if state.fold.rewrite is not None and (table.rewrites / state.fold.rewrite).exists():
                finish_rewrite(table.folder, table.rewrites / state.fold.rewrite, state.fold)
            fold = rewrite.next_fold(state)
            sync_tree(rewrite.staging, [file.path for file in rewrite.added])
            self._replace_fold(fold)
            finish_rewrite(table.folder, rewrite.staging, fold)

    def _replace_fold(self, fold: Fold) -> None:
        write_durably(self._table.manifests / FOLD, fold_to_json(fold))
        for batch_id in self._table.loose():
            os.unlink(self._table.manifests / f"{batch_id}.json")


@contextmanager
def held_by_one_run(out: Path, doing: str = "runs jobs in this folder") -> Iterator[None]:
    """Lock a folder for one run: two runs at once would compute the same points twice. Raises Busy."""
    make_folder(out / STAGING)
    lock = hold(out / STAGING / LOCK, out, doing)
    try:
        yield
    finally:
        os.close(lock)


def _read_batch(path: Path) -> Batch:
    return batch_from_json(path, path.read_bytes())


class _FoldFile:
    """Keeps what it has read last: the fold of a large archive takes megabytes, and a run writes a new one with each merge."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._newest: tuple[tuple[int, int, int], Fold] | None = None

    def read(self, identity: tuple[int, int, int]) -> Fold:
        """`identity`: inode, time and size of the file, so that each is read once."""
        newest = self._newest
        if newest is None or newest[0] != identity:
            # Not both of them in memory while the new one is read.
            self._newest = newest = None
            newest = self._newest = identity, fold_from_json(self._path, self._path.read_bytes())
        return newest[1]


_fold_file = lru_cache(maxsize=32)(_FoldFile)


def _checked(path: Path, file: CommittedFile) -> Path:
    size = os.stat(path).st_size
    if size != file.size:
        raise Damaged(f"{path}: {size} bytes, but {file.size} were committed")
    return path
