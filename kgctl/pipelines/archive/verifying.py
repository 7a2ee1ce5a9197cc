"""Checks an archive by itself: manifests, files, offsets. Plain Python and pyarrow, without Spark and without a cluster."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from kgctl.client.net.errors import KgctlError, NotFound
from kgctl.model.pipelines import ArchiveFindingRow
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.archive.files import FILE_SCHEMA
from kgctl.pipelines.archive.groups import read_groups
from kgctl.pipelines.archive.layout import (
    DAY_MS,
    RECORDS,
    ArchivedFile,
    Hole,
    ReadRange,
    date_of,
    day_of,
    partition_of,
    records_folder,
)
from kgctl.pipelines.archive.manifest import Archive, Commit, read_undamaged
from kgctl.pipelines.tables.manifest import Damaged

MANIFEST, MISSING_FILE, CHECKSUM, CONTENT = "manifest", "missing file", "checksum", "content"
NOT_READ, OVERLAP, HOLE, UNKNOWN_FILE = "not archived", "overlap", "hole", "unknown file"


@dataclass(frozen=True, slots=True)
class Verified:
    """`gaps` are offsets in the ranges that hold no record: control records, aborted records, compacted ones."""

    archive: Archive
    findings: tuple[ArchiveFindingRow, ...]
    records: int
    files: int
    gaps: int

    @property
    def damaged(self) -> frozenset[TopicPartition]:
        """Partitions with a file that is missing or not what was committed."""
        return frozenset(
            TopicPartition(row.topic, row.partition)
            for row in self.findings
            if row.finding in (MISSING_FILE, CHECKSUM, CONTENT) and row.topic is not None and row.partition is not None
        )


@dataclass(frozen=True, slots=True)
class _Checked:
    """A file's findings and its offsets, which are empty if the file cannot be read."""

    findings: list[ArchiveFindingRow]
    offsets: np.ndarray


def verify(folder: Path, *, accepts_holes: bool = False) -> Verified:
    """Raises NotFound if there is neither a commit nor a file with records."""
    archive, damaged = read_undamaged(folder)
    if not (archive.commits or damaged or _stored(folder)):
        raise NotFound(f"{folder} holds no archive")
    findings = [
        *_manifests(archive, damaged),
        *_groups(folder),
        *_steps(archive, accepts_holes=accepts_holes),
        *_files(archive),
        *_unknown_files(archive, damaged),
    ]
    ranges = [one for commit in archive.commits for one in commit.addition.ranges]
    return Verified(
        archive,
        tuple(findings),
        records=sum(one.records for one in ranges),
        files=len(archive.files()),
        gaps=sum(one.gaps for one in ranges),
    )


def finding(
    name: str, detail: str, where: TopicPartition | None = None, start: int | None = None, end: int | None = None
) -> ArchiveFindingRow:
    """A fault; `end` is the offset after the last."""
    topic, partition = where if where is not None else (None, None)
    return ArchiveFindingRow(name, topic, partition, start, None if end is None else end - 1, detail, ok=False)


def _manifests(archive: Archive, damaged: Sequence[Damaged]) -> Iterator[ArchiveFindingRow]:
    for error in damaged:
        yield finding(MANIFEST, str(error))
    if not (archive.commits or damaged):
        yield finding(MANIFEST, "all commits are missing")
    known_numbers = {number for commit in archive.commits for number in range(commit.first, commit.number + 1)}
    missing = sorted(set(range(archive.next_number)) - known_numbers)
    if missing and not damaged:
        yield finding(MANIFEST, f"commits are missing: {', '.join(map(str, missing))}")
    for commit in archive.commits[1:]:
        if commit.addition.cluster_id != archive.cluster_id:
            yield finding(MANIFEST, f"commit {commit.number} is of another cluster ({commit.addition.cluster_id})")
    for before, after in pairwise(archive.commits):
        if before.addition.isolation_level != after.addition.isolation_level:
            yield finding(MANIFEST, f"commit {after.number} has another isolation level than the one before")
    known: dict[str, str] = {}
    # Brokers before Kafka 2.8 give topics no id.
    for topic in (topic for commit in archive.commits for topic in commit.addition.topics if topic.id):
        if known.setdefault(topic.name, topic.id) != topic.id:
            yield finding(MANIFEST, f"topic {topic.name} has two ids: {known[topic.name]} and {topic.id}")


def _groups(folder: Path) -> Iterator[ArchiveFindingRow]:
    try:
        read_groups(folder)
    except KgctlError as error:
        yield finding(MANIFEST, str(error))


def _steps(archive: Archive, *, accepts_holes: bool) -> Iterator[ArchiveFindingRow]:
    """Ranges and holes must continue each partition without a break and without an overlap."""
    steps: dict[TopicPartition, list[ReadRange | Hole]] = {
        TopicPartition(topic.name, number): []
        for topic in archive.topics.values()
        for number in range(topic.partitions)
    }
    for commit in archive.commits:
        for one in commit.addition.steps:
            steps.setdefault(partition_of(one), []).append(one)
    for partition, some in sorted(steps.items()):
        if not some:
            yield finding(NOT_READ, "no commit has read this partition", partition)
            continue
        some.sort(key=lambda one: (one.start, one.end))
        end = some[0].start
        for one in some:
            if one.start > end:
                yield finding(NOT_READ, "no commit has read these offsets", partition, end, one.start)
            elif one.start < end and one.end > one.start:
                yield finding(OVERLAP, "two commits have read these offsets", partition, one.start, min(end, one.end))
            if isinstance(one, Hole):
                row = finding(HOLE, "deleted from the log before they were archived", partition, one.start, one.end)
                yield replace(row, ok=None) if accepts_holes else row
            end = max(end, one.end)


def _files(archive: Archive) -> Iterator[ArchiveFindingRow]:
    checksums = {file.sha256: file.path for file in archive.files()}
    with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:
        for commit in archive.commits:
            files = commit.addition.files
            checked = dict(zip(files, pool.map(lambda file: _file(archive, file, checksums), files), strict=True))
            for one in checked.values():
                yield from one.findings
            yield from _contents(commit, checked)


def _file(archive: Archive, file: ArchivedFile, checksums: Mapping[str, str]) -> _Checked:
    def fault(name: str, detail: str) -> _Checked:
        where = partition_of(file), file.first_offset, file.last_offset + 1
        return _Checked([finding(name, f"{file.path}: {detail}", *where)], np.empty(0, np.int64))

    path = archive.path_of(file)
    try:
        with path.open("rb") as content:
            checksum = hashlib.file_digest(content, "sha256").hexdigest()
    except FileNotFoundError:
        return fault(MISSING_FILE, "the file is missing")
    except OSError as error:
        return fault(MISSING_FILE, f"the file cannot be read: {error.strerror}")
    if checksum != file.sha256:
        size = path.stat().st_size
        other = checksums.get(checksum)
        reason = f"it has the content of {other}" if other else "its content has changed since it was committed"
        return fault(CHECKSUM, reason if size == file.size else f"{reason}: {size} bytes, {file.size} were committed")
    try:
        return _content(path, file)
    except (OSError, pa.ArrowException) as error:
        return fault(CONTENT, f"it cannot be read as Parquet: {str(error).splitlines()[0]}")


def _content(path: Path, file: ArchivedFile) -> _Checked:
    """What the rows say, beside what the manifest says of them."""
    with parquet.ParquetFile(path) as opened:
        schema = opened.schema_arrow
        if not schema.remove_metadata().equals(FILE_SCHEMA.remove_metadata()):
            detail = f"{file.path}: its columns are not those of an archive: {', '.join(schema.names)}"
            return _Checked([finding(CONTENT, detail, partition_of(file))], np.empty(0, np.int64))
        topic = (schema.metadata or {}).get(b"kgctl.topic", b"").decode()
        rows = opened.read(["partition", "offset", "timestamp"])
    offsets = rows.column("offset").to_numpy()
    times = rows.column("timestamp").cast(pa.int64()).to_numpy() // 1000
    partitions = np.unique(rows.column("partition").to_numpy()).tolist()
    dates = {date_of(day_of(time)) for time in np.unique(times // DAY_MS * DAY_MS).tolist()}
    expected = {
        "topic": (topic, file.topic),
        "partition": (", ".join(map(str, partitions)), str(file.partition)),
        "number of records": (len(offsets), file.records),
        "first offset": (_end(offsets, 0), file.first_offset),
        "last offset": (_end(offsets, -1), file.last_offset),
        "oldest timestamp": (int(times.min()) if len(times) else None, file.min_timestamp_ms),
        "newest timestamp": (int(times.max()) if len(times) else None, file.max_timestamp_ms),
        "date": (dates, {Path(file.path).parent.name.removeprefix("date=")}),
    }
    details = [f"its {name} is {found}, not {wanted}" for name, (found, wanted) in expected.items() if found != wanted]
    if not (np.diff(offsets) > 0).all():
        details.append("its offsets do not ascend")
    where = partition_of(file), file.first_offset, file.last_offset + 1
    return _Checked([finding(CONTENT, f"{file.path}: {detail}", *where) for detail in details], offsets)


def _end(offsets: np.ndarray, at: int) -> int | None:
    return int(offsets[at]) if len(offsets) else None


def _contents(commit: Commit, checked: Mapping[ArchivedFile, _Checked]) -> Iterator[ArchiveFindingRow]:
    """The offsets of a commit's files: each once, inside of a range, as many as the range says."""
    by_partition: dict[TopicPartition, list[np.ndarray]] = {}
    faulty = {partition_of(file) for file, one in checked.items() if one.findings}
    for file, one in checked.items():
        by_partition.setdefault(partition_of(file), []).append(one.offsets)
    ranges: dict[TopicPartition, list[ReadRange]] = {}
    for range_ in commit.addition.ranges:
        ranges.setdefault(partition_of(range_), []).append(range_)
    for partition, parts in sorted(by_partition.items()):
        offsets = np.concatenate(parts)
        found, counts = np.unique(offsets, return_counts=True)
        for offset in found[counts > 1][:1].tolist():
            detail = f"commit {commit.number} holds {int((counts > 1).sum())} offsets more than once"
            yield finding(OVERLAP, detail, partition, offset, offset + 1)
        if partition not in ranges:
            yield finding(CONTENT, f"commit {commit.number} has files but no range of this partition", partition)
    for partition, some in sorted(ranges.items()):
        offsets = np.concatenate(by_partition.get(partition, [np.empty(0, np.int64)]))
        where = partition, some[0].start, some[-1].end
        inside = [(offsets >= range_.start) & (offsets < range_.end) for range_ in some]
        outside = len(offsets) - int(np.logical_or.reduce(inside).sum())
        if outside:
            yield finding(CONTENT, f"commit {commit.number} holds {outside} records outside of the range", *where)
            continue
        for range_, chosen in zip(some, inside, strict=True):
            count = int(chosen.sum())
            if count != range_.records and partition not in faulty:
                detail = f"commit {commit.number} holds {count} records of this range, and {range_.records} were read"
                yield finding(CONTENT, detail, partition, range_.start, range_.end)


def _stored(folder: Path) -> list[Path]:
    return sorted(records_folder(folder).rglob("*.parquet"))


def _unknown_files(archive: Archive, damaged: Sequence[Damaged]) -> Iterator[ArchiveFindingRow]:
    """Other programs read every file in the folder, whether it is committed or not."""
    if damaged:
        return
    known = _known_files(archive)
    unknown = [name for path in _stored(archive.folder) if (name := _name_of(archive, path)) not in known]
    if unknown:
        # A run may have committed files since the manifests were read.
        newest, more_damaged = read_undamaged(archive.folder)
        known = _known_files(newest)
        unknown = [] if more_damaged else unknown
    for name in unknown:
        if name not in known:
            yield finding(UNKNOWN_FILE, f"{name}: no commit has this file, but other programs read it")


def _known_files(archive: Archive) -> set[str]:
    # What a merge has replaced is there until it is finished, and readers of the folder see it instead of the new files.
    return {file.path for file in archive.files()} | archive.leaving


def _name_of(archive: Archive, path: Path) -> str:
    return f"{RECORDS}/{path.relative_to(records_folder(archive.folder)).as_posix()}"
