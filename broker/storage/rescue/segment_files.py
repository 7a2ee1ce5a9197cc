"""All segment files of a damaged directory, each under the partition whose records it holds.

A sealed file names its partition in its trailer. A file without one, such as an active one, belongs to the partition in
whose directory it lies, unless the synced end of another partition has the checksum of one of its batches.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from broker.light_named_tuples import NamedTuple
from broker.protocol.record_batch import HEADER_BYTES, parse_header
from broker.storage.rescue.batches import SegmentFile, first_offset, whole_batches
from broker.storage.rescue.reading import SourceFile
from broker.storage.segments.synced_ends import SyncedEnd
from broker.storage.segments.trailer import TRAILER_BYTES, Trailer, parse_trailer

PartitionKey: TypeAlias = tuple[bytes, int]  # topic id and partition


_PARTITION_NAME = re.compile(r"\d{1,6}")
_SEGMENT_NAME = re.compile(r"(\d{20})(?:\.(\d{1,9}))?\.log")
UNKNOWN_OWNER: PartitionKey = (b"", -1)


class FoundFiles(NamedTuple):
    files: dict[PartitionKey, list[SegmentFile]]
    warnings: list[str]


def find_segment_files(directories: Iterable[tuple[Path, bytes]], ends: Mapping[PartitionKey, SyncedEnd]) -> FoundFiles:
    """Look at the names, trailers and last batches of all files in the directories of topics."""
    found, owners = FoundFiles({}, []), _Owners(ends)
    for path, key in _partition_directories(directories):
        for file in sorted(path.iterdir()):
            named = _named(file)
            if named is None or not file.is_file():
                continue
            source = SourceFile(file)
            trailer = parse_trailer(source.read(max(0, source.size - TRAILER_BYTES), TRAILER_BYTES))
            if trailer is not None:
                owner, segment = (trailer.topic_id, trailer.partition), _sealed(file, trailer)
            else:
                owner, segment = owners.of(source, named, key)
            if owner == UNKNOWN_OWNER:
                found.warnings.append(f"{file} holds the records of another partition, which is unknown: left out")
                continue
            if owner != key:
                found.warnings.append(f"{file} holds the records of topic id {owner[0].hex()}, partition {owner[1]}")
            found.files.setdefault(owner, []).append(segment)
    return found


def _partition_directories(directories: Iterable[tuple[Path, bytes]]) -> Iterator[tuple[Path, PartitionKey]]:
    for directory, topic_id in directories:
        for path in sorted(directory.iterdir()):
            if _PARTITION_NAME.fullmatch(path.name) and path.is_dir():
                yield path, (topic_id, int(path.name))


def _named(path: Path) -> SegmentFile | None:
    """Base offset and revision from the name of a segment file; None for another file."""
    found = _SEGMENT_NAME.fullmatch(path.name)
    if found is None or int(found[1]) >= 2**63:
        return None
    return SegmentFile(path, int(found[1]), int(found[2] or 0))


def _sealed(path: Path, trailer: Trailer) -> SegmentFile:
    return SegmentFile(path, trailer.base_offset, trailer.revision, trailer.end_offset, trailer.size_bytes)


class _Owners:
    """Finds the partition of a file without a trailer."""

    def __init__(self, ends: Mapping[PartitionKey, SyncedEnd]) -> None:
        self._ends = ends
        self._by_base: dict[int, list[PartitionKey]] = {}
        for key, end in ends.items():
            if end.last_size:
                self._by_base.setdefault(end.base_offset, []).append(key)

    def of(self, source: SourceFile, file: SegmentFile, place: PartitionKey) -> tuple[PartitionKey, SegmentFile]:
        """UNKNOWN_OWNER if it is not the partition of its place, and not known."""
        end = self._ends.get(place)
        is_active = end is not None and end.base_offset == file.base_offset
        if end is not None and is_active and (not end.last_size or _ends_at(source, end)):
            return place, _active(file, end)
        for base_offset in (file.base_offset, int.from_bytes(source.read(0, 8), "big")):
            for key in self._by_base.get(base_offset, ()):
                if _ends_at(source, self._ends[key]):
                    return key, _active(file, self._ends[key])
        if first_offset(file) != file.base_offset:
            return UNKNOWN_OWNER, file
        if end is None or not is_active:
            return place, file
        return (UNKNOWN_OWNER, file) if _is_foreign(file, end) else (place, _active(file, end))


def _active(file: SegmentFile, end: SyncedEnd) -> SegmentFile:
    return SegmentFile(file.path, end.base_offset, file.revision, end.end_offset, end.position)


def _ends_at(source: SourceFile, end: SyncedEnd) -> bool:
    """Whether the batch that the synced end names is where it says."""
    head = source.read(end.position - end.last_size, HEADER_BYTES) if end.position >= end.last_size else b""
    return len(head) == HEADER_BYTES and parse_header(head).crc == end.last_crc


def _is_foreign(file: SegmentFile, end: SyncedEnd) -> bool:
    """Whether a whole batch contradicts the synced end: another one ends there, or one lies across it."""
    for batch in whole_batches(file, None):
        if batch.position + len(batch.content) >= end.position:
            return batch.position < end.position and batch.header.crc != end.last_crc
    return False
