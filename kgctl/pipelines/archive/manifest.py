"""Reads an archive's commits, and adds to them: whole or not at all, whenever the writer dies.

`tables.manifest` does the commits; here is what they mean: per partition an unbroken sequence of ranges and holes. Imports
neither Spark nor pyarrow.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from kgctl.client.net.errors import NotFound, Precondition
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.archive.layout import (
    FORMAT,
    RECORDS,
    Addition,
    ArchivedFile,
    Hole,
    TopicFacts,
    partition_of,
    records_folder,
)
from kgctl.pipelines.tables.manifest import Batch, Damaged, StagedFile, TableFolder, Writer
from kgctl.pipelines.tables.rewriting import Rewrite, set_aside
from kgctl.pipelines.tables.state import Fold

_BATCH_ID = re.compile(r"batch-(\d{8,})")


class NotContiguous(Precondition):
    """A range or a hole does not start where the archive of its partition ends."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit, or several that were joined. `committed_ms`, of the last, is since 1970.

    Numbers count from 0 without gaps; `first` is that of the first commit, and `number` that of the last.
    """

    number: int
    committed_ms: int
    addition: Addition
    first: int


@dataclass(frozen=True)
class Archive:
    """What is committed, as of one moment. Commits are in order; partitions are sorted."""

    folder: Path
    commits: tuple[Commit, ...]
    # Where a file is while its commit or a merge is not finished.
    _staged: dict[str, list[Path]] = field(default_factory=dict, repr=False, compare=False)
    # Files that a merge has replaced, and that are there until it is finished.
    leaving: frozenset[str] = field(default=frozenset(), repr=False, compare=False)

    @property
    def next_number(self) -> int:
        """Of the next commit."""
        return self.commits[-1].number + 1 if self.commits else 0

    @property
    def cluster_id(self) -> str:
        return self.commits[0].addition.cluster_id

    @property
    def isolation_level(self) -> str:
        """read_committed or read_uncommitted."""
        return self.commits[0].addition.isolation_level

    @cached_property
    def topics(self) -> dict[str, TopicFacts]:
        """The newest facts of each topic, by name."""
        return {
            topic.name: topic
            for topic in sorted(
                {one.name: one for commit in self.commits for one in commit.addition.topics}.values(),
                key=lambda one: one.name,
            )
        }

    @cached_property
    def partitions(self) -> tuple[TopicPartition, ...]:
        return tuple(sorted(self.spans))

    @cached_property
    def spans(self) -> dict[TopicPartition, tuple[int, int]]:
        """Per partition the first offset of the archive, and the offset after its last."""
        found: dict[TopicPartition, tuple[int, int]] = {}
        for commit in self.commits:
            for one in commit.addition.steps:
                first, last = found.get(partition_of(one), (one.start, one.end))
                found[partition_of(one)] = min(first, one.start), max(last, one.end)
        return found

    def ends(self) -> dict[TopicPartition, int]:
        """Per partition the offset at which the archive continues."""
        return {partition: end for partition, (_, end) in self.spans.items()}

    @cached_property
    def leader_epochs(self) -> dict[TopicPartition, int]:
        """Per partition the leader epoch of the last range, where it is known."""
        ranges = (one for commit in self.commits for one in commit.addition.ranges)
        return {partition_of(one): one.leader_epoch for one in ranges if one.leader_epoch >= 0}

    def files(self, partition: TopicPartition | None = None) -> Sequence[ArchivedFile]:
        """In the order of their first offsets, of all partitions or of one."""
        if partition is not None:
            return self._files.get(partition, [])
        return [file for _, files in sorted(self._files.items()) for file in files]

    @cached_property
    def _files(self) -> dict[TopicPartition, list[ArchivedFile]]:
        found: dict[TopicPartition, list[ArchivedFile]] = {}
        for commit in self.commits:
            for file in commit.addition.files:
                found.setdefault(partition_of(file), []).append(file)
        for files in found.values():
            files.sort(key=lambda file: (file.first_offset, file.path))
        return found

    def holes(self) -> list[Hole]:
        """By partition, in the order of their offsets."""
        found = (one for commit in self.commits for one in commit.addition.holes)
        return sorted(found, key=lambda one: (partition_of(one), one.start))

    def missing_file(self, topics: Collection[str]) -> Path | None:
        """A file of these topics that is gone; None if all are there. Contents are not checked."""
        paths = (self.path_of(file) for file in self.files() if file.topic in topics)
        return next((path for path in paths if not path.is_file()), None)

    def path_of(self, file: ArchivedFile) -> Path:
        """Where the file is now; it may be missing. Between a commit and its renames it is in staging."""
        path = self.folder / file.path
        if path.exists():
            return path
        return next((staged for staged in self._staged.get(file.path, ()) if staged.exists()), path)


def read_archive(folder: Path) -> Archive:
    """Raises NotFound if there is no archive, Damaged if a manifest cannot be read."""
    archive = _read(folder)
    if not archive.commits:
        raise NotFound(f"{folder} holds no archive; `kgctl pipeline archive TOPIC --out {folder}` writes one")
    return archive


class ArchiveWriter:
    """Adds to a locked archive; see `writing`. `archive` is what is committed so far."""

    def __init__(self, archive: Archive, table: TableFolder, writer: Writer) -> None:
        self.archive, self.table = archive, table
        self._writer = writer

    def commit(
        self, write: Callable[[Path], Sequence[ArchivedFile]], complete: Callable[[Sequence[ArchivedFile]], Addition]
    ) -> Addition:
        """Write files into a staging folder, and commit them with what `complete` makes of them.

        `write` gets an existing folder and returns the files, with paths relative to it. What it wrote and did not return
        is deleted. Raises NotContiguous, Damaged, and what `write` and `complete` raise; then nothing is committed.
        """
        batch_id = _batch_id(self.archive.next_number)
        staging = self._writer.stage(batch_id)
        staging.mkdir()
        try:
            files = sorted(write(staging), key=lambda file: file.path)
            addition = replace(complete(files), files=tuple(files))
            check_next(self.archive, addition)
        except BaseException:
            self._writer.discard(staging)
            raise
        staged = [StagedFile(file.path, file.records) for file in files]
        try:
            is_new = self._writer.commit(batch_id, staging, staged, facts=addition.to_json())
        except BaseException:
            # A disk that is full should not stay so.
            if not self.table.state().knows(batch_id):
                self._writer.discard(staging)
            raise
        if not is_new:
            raise Damaged(
                f"{self.archive.folder}: {batch_id} cannot be committed: the manifest already has it; `kgctl pipeline verify` "
                "checks the manifest"
            )
        self.archive = _read(self.archive.folder, self.archive)
        return self.archive.commits[-1].addition

    def rewrite(self, rewrite: Rewrite, wait_s: float) -> None:
        """Replace commits and files by others that hold the same. Raises Busy if readers need the files."""
        try:
            self._writer.rewrite(rewrite, wait_s)
        finally:
            self.archive = _read(self.archive.folder)


@contextmanager
def writing(folder: Path) -> Iterator[ArchiveWriter]:
    """Lock the archive, which need not exist, and finish what an earlier writer left. Raises Busy, Damaged."""
    table = TableFolder(records_folder(folder))
    with table.writing() as writer:
        yield ArchiveWriter(_read(folder), table, writer)


@contextmanager
def kept_in_place(folder: Path) -> Iterator[None]:
    """Keep the files of an archive where they are while they are read: merges wait, commits do not."""
    with TableFolder(records_folder(folder)).reading():
        yield


def commit_facts(addition: Addition, first: int) -> dict[str, Any]:
    """What the manifest of joined commits says; `first` is the number of the first."""
    return {**addition.to_json(), "format": FORMAT, "first": first}


def check_next(archive: Archive, addition: Addition) -> None:
    """Raises NotContiguous unless every range and hole continues its partition, and ranges hold the records of their files."""
    ends = archive.ends()
    for one in addition.steps:
        end = ends.get(partition_of(one), one.start)
        if one.start != end or one.end < one.start:
            raise NotContiguous(f"{partition_of(one)}: offsets {one.start} to {one.end - 1} do not continue at {end}")
        ends[partition_of(one)] = one.end
    ranges = {partition_of(one): one for one in addition.ranges}
    counts = dict.fromkeys(ranges, 0)
    for file in addition.files:
        range_ = ranges.get(partition_of(file))
        if range_ is None or not range_.start <= file.first_offset <= file.last_offset < range_.end:
            raise NotContiguous(f"{partition_of(file)}: {file.path} holds records outside of the range that was read")
        counts[partition_of(file)] += file.records
    for partition, range_ in ranges.items():
        if counts[partition] != range_.records:
            raise NotContiguous(f"{partition}: the files hold {counts[partition]} records, not {range_.records}")


def read_undamaged(folder: Path) -> tuple[Archive, list[Damaged]]:
    """The commits that can be read, and what is wrong with the others."""
    table = TableFolder(records_folder(folder))
    damaged = []
    names = table.loose()
    try:
        fold = table.fold()
    except Damaged as error:
        damaged.append(error)
        fold = Fold()
    batches = list(fold.batches)
    for name in sorted(names):
        if name in fold:
            continue
        try:
            batch = table.batch(name)
        except Damaged as error:
            damaged.append(error)
        else:
            batches += [] if batch is None else [batch]
    return _archive(folder, table, fold, batches, damaged=damaged), damaged


def _read(folder: Path, known: Archive | None = None) -> Archive:
    """All commits; those that are `known` are not read again. Raises Damaged."""
    table = TableFolder(records_folder(folder))
    if known is None:
        state = table.state()
        return _archive(folder, table, state.fold, state.batches)
    following = table.batch(_batch_id(known.next_number))
    return _archive(folder, table, table.fold(), [] if following is None else [following], known.commits)


def _archive(
    folder: Path,
    table: TableFolder,
    fold: Fold,
    batches: Iterable[Batch],
    before: Sequence[Commit] = (),
    damaged: list[Damaged] | None = None,
) -> Archive:
    """A damaged commit is left out and added to `damaged`, if that is given."""
    batches, commits = list(batches), list(before)
    firsts = _first_numbers(batches)
    staged: dict[str, list[Path]] = {}
    for batch in batches:
        try:
            commits.append(_commit(table, batch, fold, firsts))
        except Damaged as error:
            if damaged is None:
                raise
            damaged.append(error)
        loose = None if batch.id in fold else batch
        for file in batch.files:
            places = [table.staged(fold, file, loose)]
            if fold.rewrite is not None:
                places.append(set_aside(table.rewrites / fold.rewrite, file.path))
            staged[f"{RECORDS}/{file.path}"] = [place for place in places if place is not None]
    is_pending = fold.rewrite is not None and (table.rewrites / fold.rewrite).exists()
    leaving = frozenset(f"{RECORDS}/{path}" for path in fold.replaced) if is_pending else frozenset[str]()
    return Archive(folder, tuple(sorted(commits, key=lambda commit: commit.number)), staged, leaving)


def _batch_id(number: int) -> str:
    return f"batch-{number:08d}"


def commit_number(batch_id: str) -> int:
    """Raises ValueError."""
    number = _BATCH_ID.fullmatch(batch_id)
    if number is None:
        raise ValueError("its name is not one of an archive")
    return int(number[1])


def _first_numbers(batches: Iterable[Batch]) -> frozenset[int]:
    """Those of batches that can be read."""
    found = set()
    for batch in batches:
        with suppress(TypeError, ValueError):
            found.add(_first_number(batch))
    return frozenset(found)


def _first_number(batch: Batch) -> int:
    """The number of the first commit that the batch holds. Raises TypeError or ValueError."""
    return int(batch.facts.get("first", commit_number(batch.id)))


def _last_number(batch: Batch, fold: Fold, firsts: Collection[int]) -> int:
    """The number of the last commit that the batch holds, which is its own. `firsts` are the first numbers of all batches.

    If the clock was set back, an earlier kgctl named joined commits after another one than the last; the fold knows the others.
    """
    number = commit_number(batch.id)
    while number + 1 not in firsts and _batch_id(number + 1) in fold.known:
        number += 1
    return number


def _commit(table: TableFolder, batch: Batch, fold: Fold, firsts: Collection[int]) -> Commit:
    try:
        number = _last_number(batch, fold, firsts)
        addition = Addition.from_json(batch.facts)
        first = _first_number(batch)
        places = {file.staged: file.path for file in batch.files}
        files = tuple(replace(file, path=f"{RECORDS}/{places[file.path]}") for file in addition.files)
    except (KeyError, TypeError, ValueError) as error:
        reason = f"missing field {error}" if isinstance(error, KeyError) else str(error)
        raise Damaged(f"{table.manifests / batch.id}.json: the manifest is damaged ({reason})") from error
    return Commit(number, batch.committed_ms, replace(addition, files=files), first)
