"""What manifests say, as values, and as JSON with a checksum. Does not import Spark."""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from kgctl.pipelines.tables.errors import Damaged, Newer
from kgctl.pipelines.tables.known_ids import KnownIds, known_ids

# 1: a manifest per batch, files without a schema version. 2: also a fold, files with a schema version.
VERSION = 2

Note = str | int


def folder_of(path: str) -> str:
    """Of a file's path that is relative to the table's folder. An archive has a folder for each topic around its days."""
    return path.rpartition("/")[0]


@dataclass(frozen=True, slots=True)
class StagedFile:
    """`path` is relative to the staging folder; the folders in it, such as `date=`, are kept."""

    path: str
    rows: int


@dataclass(frozen=True, slots=True)
class CommittedFile:
    """`path` is relative to the table's folder, `staged` to the staging folder; `size` in bytes.

    `schema` is the version of the table's columns (see schemas.model) that the file was written with.
    """

    path: str
    staged: str
    rows: int
    size: int
    schema: int = 1

    @property
    def day(self) -> str:
        """The folder: date=2026-01-31."""
        return folder_of(self.path)


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


@dataclass(frozen=True)
class Fold:
    """Everything that was committed up to one moment, in one file. Each fold and each rewrite makes the next one.

    `batches` have files or facts of their own; `merged` are files that a rewrite wrote from those of several batches. `known` are
    the ids of all other batches; `notes` has the newest value of each note, `written_ms` the time of the newest commit.
    `rewrite` names the staging folder of the newest rewrite, `replaced` the files that it replaced: while that folder
    exists, the table's folder may still hold them.
    """

    number: int = 0
    written_ms: int | None = None
    batches: tuple[Batch, ...] = ()
    merged: tuple[CommittedFile, ...] = ()
    known: KnownIds = field(default_factory=KnownIds)
    notes: Mapping[str, Note] = field(default_factory=dict)
    rewrite: str | None = None
    replaced: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[CommittedFile, ...]:
        return (*self.merged, *(file for batch in self.batches for file in batch.files))

    @cached_property
    def ids(self) -> frozenset[str]:
        """Of `batches`."""
        return frozenset(batch.id for batch in self.batches)

    def __contains__(self, batch_id: str) -> bool:
        return batch_id in self.ids or batch_id in self.known


@dataclass(frozen=True)
class TableState:
    """A table at one moment: its newest fold, and what was committed after it, in commit order."""

    fold: Fold
    loose: tuple[Batch, ...]

    @cached_property
    def batches(self) -> tuple[Batch, ...]:
        """The batches with files or facts of their own, and those since the fold, in commit order."""
        return (*self.fold.batches, *self.loose)

    @cached_property
    def files(self) -> tuple[CommittedFile, ...]:
        return (*self.fold.files, *(file for batch in self.loose for file in batch.files))

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def committed(self) -> int:
        """How many batches were ever committed."""
        return len(self.fold.known) + len(self.batches)

    @property
    def written_ms(self) -> int | None:
        """The time of the newest commit."""
        return self.loose[-1].committed_ms if self.loose else self.fold.written_ms

    @cached_property
    def notes(self) -> dict[str, Note]:
        """The newest value of each note."""
        return _newest(self.fold.notes, self.loose)

    def knows(self, batch_id: str) -> bool:
        """Whether a batch with this id was ever committed."""
        return batch_id in self.fold or any(batch.id == batch_id for batch in self.loose)

    def folded(self, removed: Collection[str] = (), added: Iterable[CommittedFile] = ()) -> Fold:
        """All of it in the next fold, without the files whose paths are `removed`, and with those that are `added`."""
        left = [_without(batch, removed) for batch in self.batches]
        return Fold(
            number=self.fold.number + 1,
            written_ms=self.written_ms,
            batches=tuple(batch for batch in left if batch.files or batch.facts),
            merged=(*(file for file in self.fold.merged if file.path not in removed), *added),
            known=self.fold.known.with_ids(batch.id for batch in left if not (batch.files or batch.facts)),
            notes=self.notes,
            rewrite=self.fold.rewrite,
            replaced=self.fold.replaced,
        )


def _without(batch: Batch, removed: Collection[str]) -> Batch:
    left = tuple(file for file in batch.files if file.path not in removed)
    return batch if len(left) == len(batch.files) else replace(batch, files=left)


def _newest(before: Mapping[str, Note], batches: Sequence[Batch]) -> dict[str, Note]:
    notes = dict(before)
    for batch in batches:
        notes |= batch.notes
    return notes


def batch_to_json(batch: Batch) -> bytes:
    return _sealed({"version": VERSION, **asdict(batch)})


def fold_to_json(fold: Fold) -> bytes:
    content = {
        "version": VERSION,
        "number": fold.number,
        "written_ms": fold.written_ms,
        "batches": [asdict(batch) for batch in fold.batches],
        "merged": [asdict(file) for file in fold.merged],
        "known": fold.known.to_json(),
        "notes": dict(fold.notes),
        "rewrite": fold.rewrite,
        "replaced": list(fold.replaced),
    }
    return _sealed(content)


def batch_from_json(path: Path, content: bytes) -> Batch:
    """Raises Damaged, Newer."""
    try:
        return _batch(_opened(path, content))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise _damaged(path, error) from error


def fold_from_json(path: Path, content: bytes) -> Fold:
    """Raises Damaged, Newer."""
    try:
        found = _opened(path, content)
        return Fold(
            number=found["number"],
            written_ms=found["written_ms"],
            batches=tuple(_batch(batch) for batch in found["batches"]),
            merged=tuple(CommittedFile(**file) for file in found["merged"]),
            known=known_ids(found["known"]),
            notes=found["notes"],
            rewrite=found["rewrite"],
            replaced=tuple(found["replaced"]),
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise _damaged(path, error) from error


def _batch(found: Mapping[str, Any]) -> Batch:
    return Batch(
        id=found["id"],
        committed_ms=found["committed_ms"],
        staging=found["staging"],
        files=tuple(CommittedFile(**file) for file in found["files"]),
        notes=found["notes"],
        facts=found.get("facts", {}),
    )


def _sealed(content: dict[str, Any]) -> bytes:
    content["crc32"] = checksum(content)
    return json.dumps(content, separators=(",", ":")).encode()


def _opened(path: Path, text: bytes) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(text)
    version = content["version"]
    if isinstance(version, int) and version > VERSION:
        raise Newer(
            f"{path}: the manifest has format {version}, written by a newer kgctl; this one reads format {VERSION}"
        )
    expected = content.pop("crc32")
    if expected != checksum(content):
        raise ValueError("the checksum does not match")
    return content


def checksum(content: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(content, sort_keys=True).encode())


def _damaged(path: Path, error: Exception) -> Damaged:
    reason = f"missing field {error}" if isinstance(error, KeyError) else str(error)
    return Damaged(f"{path}: the manifest is damaged ({reason}); do not trust the rows of this batch")
