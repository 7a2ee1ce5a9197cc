"""The manifest of a table folder: a batch is committed as a whole or not at all, whenever its writer dies. Does not import Spark.

OUT/_staging/<table>/<batch>-<random>/   files being written; not below the table, because the globs of DuckDB and Polars
                                         search every folder, whatever its name
OUT/<table>/_manifest/<batch>.json       its rename is the commit; the first commit of a batch id wins
OUT/<table>/_manifest/lock               held while a process writes
OUT/<table>/date=.../<batch>-<n>.parquet the files, renamed to these names after the commit

Between the commit and the last rename, a reader of the manifest finds files in staging. A reader of the folder does not
see them yet; the next writer finishes the renames.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import time
import uuid
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kgctl.client.net.errors import KgctlError, Precondition

VERSION = 1
STAGING, MANIFEST, LOCK = "_staging", "_manifest", "lock"
# How long a reader waits for a live writer to rename its files after the commit.
SETTLE_S, _POLL_S = 0.2, 0.01
_BATCH_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._=-]{0,180}")

Note = str | int


class Busy(Precondition):
    """Another process writes to the table, or runs jobs in the folder."""

    name = "BUSY"


class Damaged(KgctlError):
    """A manifest cannot be read, or a committed file does not match its manifest."""

    name = "DAMAGED"


@dataclass(frozen=True, slots=True)
class StagedFile:
    """`path` is relative to the staging folder; the folders in it, such as `date=`, are kept."""

    path: str
    rows: int


@dataclass(frozen=True, slots=True)
class CommittedFile:
    """`path` is relative to the table's folder, `staged` to the staging folder; `size` in bytes."""

    path: str
    staged: str
    rows: int
    size: int


@dataclass(frozen=True, slots=True)
class Batch:
    """The files of one commit. `staging` is the name of the folder that they were written to.

    `facts` is JSON that the table's own kind adds to the commit; an archive keeps its offset ranges there.
    """

    id: str
    committed_ms: int
    staging: str
    files: tuple[CommittedFile, ...]
    notes: dict[str, Note]
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)


class TableFolder:
    """One table's folder; it need not exist. Reading takes no lock."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manifests = folder / MANIFEST
        self.staging = folder.parent / STAGING / folder.name

    def batches(self) -> list[Batch]:
        """All committed batches in commit order. Raises Damaged."""
        try:
            names = [name for name in os.listdir(self.manifests) if name.endswith(".json")]
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(
            (_read(self.manifests / name) for name in names), key=lambda batch: (batch.committed_ms, batch.id)
        )

    def rows(self) -> int:
        return sum(batch.rows for batch in self.batches())

    def files(self) -> list[Path]:
        """The current paths of all committed files. Raises Damaged if one is missing or truncated."""
        deadline = time.monotonic() + SETTLE_S
        return [self._settled(batch, file, deadline) for batch in self.batches() for file in batch.files]

    def batch(self, batch_id: str) -> Batch | None:
        """The committed batch with this id, if there is one. Raises Damaged."""
        manifest = self._manifest_of(batch_id)
        return _read(manifest) if manifest.exists() else None

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        """Lock the table and finish what an earlier writer left. Raises Busy, Damaged."""
        _make_folder(self.manifests)
        lock = _hold(self.manifests / LOCK, self.folder, "is writing to this table")
        try:
            self._recover()
            yield Writer(self)
        finally:
            os.close(lock)

    def _manifest_of(self, batch_id: str) -> Path:
        if not _BATCH_ID.fullmatch(batch_id):
            raise ValueError(
                f"{batch_id!r} is not a batch id: use letters and digits, and . _ = - after the first character"
            )
        return self.manifests / f"{batch_id}.json"

    def _recover(self) -> None:
        for name in os.listdir(self.manifests):
            if name.endswith(".new"):
                os.unlink(self.manifests / name)
        try:
            left = os.listdir(self.staging)
        except FileNotFoundError:
            return
        for name in left:
            # The batch id may contain the separator; the random part does not.
            manifest = self.manifests / f"{name.rpartition('-')[0]}.json"
            batch = _read(manifest) if manifest.exists() else None
            if batch is not None and batch.staging == name:
                self.rename_files(batch)
            else:
                shutil.rmtree(self.staging / name, ignore_errors=True)

    def rename_files(self, batch: Batch) -> None:
        """Move the files of a committed batch out of staging, except those that are moved already."""
        staging = self.staging / batch.staging
        for file in batch.files:
            source, target = staging / file.staged, self.folder / file.path
            if source.exists():
                _make_folder(target.parent)
                os.replace(source, target)
            elif not target.exists():
                raise Damaged(f"{target}: the file of a committed batch is missing")
        # The staging folder may go only after the new names are synced.
        for folder in sorted({(self.folder / file.path).parent for file in batch.files}):
            _sync(folder)
        shutil.rmtree(staging, ignore_errors=True)

    def _settled(self, batch: Batch, file: CommittedFile, deadline: float) -> Path:
        target, source = self.folder / file.path, self.staging / batch.staging / file.staged
        while True:
            if _size(target) is not None:
                return _checked(target, file)
            waits = _size(source) is not None
            if waits and time.monotonic() < deadline:
                time.sleep(_POLL_S)
            elif waits:
                return _checked(source, file)
            elif _size(target) is None:
                raise Damaged(f"{target}: the file of a committed batch is missing")


class Writer:
    """Writes to a locked table; see TableFolder.writing."""

    def __init__(self, table: TableFolder) -> None:
        self._table = table

    def stage(self, batch_id: str) -> Path:
        """The path of a new staging folder, which the caller creates; its parent exists."""
        self._table._manifest_of(batch_id)
        _make_folder(self._table.staging)
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
    ) -> bool:
        """Return True if the files are now part of the table, False if the batch was committed before; then they are deleted."""
        manifest = self._table._manifest_of(batch_id)
        if manifest.exists():
            self.discard(staging)
            return False
        _sync_tree(staging, files)
        batch = Batch(
            id=batch_id,
            committed_ms=time.time_ns() // 1_000_000,
            staging=staging.name,
            files=tuple(
                CommittedFile(
                    path=f"{file.path.rpartition('/')[0]}/{batch_id}-{number}.parquet",
                    staged=file.path,
                    rows=file.rows,
                    size=os.stat(staging / file.path).st_size,
                )
                for number, file in enumerate(sorted(files, key=lambda file: file.path))
            ),
            notes=dict(notes or {}),
            facts=dict(facts or {}),
        )
        _write(manifest, batch)
        self._table.rename_files(batch)
        return True


@contextmanager
def held_by_one_run(out: Path) -> Iterator[None]:
    """Lock a folder for one run: two runs at once would compute the same points twice. Raises Busy."""
    _make_folder(out / STAGING)
    lock = _hold(out / STAGING / LOCK, out, "runs jobs in this folder")
    try:
        yield
    finally:
        os.close(lock)


def _hold(path: Path, folder: Path, doing: str) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = os.read(descriptor, 32).decode("ascii", "replace").strip()
        os.close(descriptor)
        if not isinstance(error, BlockingIOError):
            raise
        process = f"process {holder}" if holder.isdigit() else "another process"
        raise Busy(f"{folder}: {process} {doing}; wait for it to end, or give another --out") from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor


def _write(path: Path, batch: Batch) -> None:
    """The commit: rename the manifest and sync the folder, so that it survives a power cut."""
    content: dict[str, Any] = {"version": VERSION, **asdict(batch)}
    content["crc32"] = _checksum(content)
    draft = path.with_suffix(".new")
    with open(draft, "w", encoding="utf-8") as file:
        json.dump(content, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)
    _sync(path.parent)


def _read(path: Path) -> Batch:
    try:
        content: dict[str, Any] = json.loads(path.read_bytes())
        version = content["version"]
        if isinstance(version, int) and version > VERSION:
            raise Damaged(
                f"{path}: the manifest has format {version}, written by a newer kgctl; this one reads format {VERSION}"
            )
        expected = content.pop("crc32")
        if expected != _checksum(content):
            raise ValueError("the checksum does not match")
        return Batch(
            id=content["id"],
            committed_ms=content["committed_ms"],
            staging=content["staging"],
            files=tuple(CommittedFile(**file) for file in content["files"]),
            notes=content["notes"],
            facts=content.get("facts", {}),
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        reason = f"missing field {error}" if isinstance(error, KeyError) else str(error)
        raise Damaged(f"{path}: the manifest is damaged ({reason}); do not trust the rows of this batch") from error


def _checksum(content: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(content, sort_keys=True).encode())


def _checked(path: Path, file: CommittedFile) -> Path:
    size = _size(path)
    if size is not None and size != file.size:
        raise Damaged(f"{path}: {size} bytes, but {file.size} were committed")
    return path


def _size(path: Path) -> int | None:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return None


def _make_folder(path: Path) -> None:
    """Create the folder and its parents, and sync each."""
    if path.is_dir():
        return
    _make_folder(path.parent)
    path.mkdir(exist_ok=True)
    _sync(path.parent)


def _sync_tree(root: Path, files: Sequence[StagedFile]) -> None:
    """Sync the files and every folder between them and the root's parent."""
    folders = {root.parent, root}
    for file in files:
        path = root / file.path
        _sync(path)
        folders.update(parent for parent in path.parents if parent.is_relative_to(root))
    for folder in sorted(folders, reverse=True):
        _sync(folder)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
