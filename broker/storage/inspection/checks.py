"""Checks of everything on disk that has a checksum, and of what the files say of each other."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from broker.light_named_tuples import NamedTuple
from broker.storage.errors import StorageError, StoreDamageError
from broker.storage.inspection.partitions import StoredPartition
from broker.storage.inspection.reader import ROW_TOPICS, DataDirectory
from broker.storage.inspection.segment_checks import SegmentDamage, check_segment, is_same_segment
from broker.storage.inspection.store_checks import (
    Found,
    check_commits,
    check_ends,
    check_pages,
    check_rows,
    check_structure,
    str_of,
)
from broker.storage.inspection.stored_rows import SHARE_STATE
from broker.storage.segments.topic_files import NAME as TOPIC_FILE_NAME
from broker.storage.segments.topic_files import TopicDescription


class Damage(NamedTuple):
    """`place` says where in the file: a page, a position, a partition."""

    file: str
    place: str
    damage: str


class Check(NamedTuple):
    """How many things of the kind `part` were checked, and their size."""

    part: str
    checked: int
    size_bytes: int
    damages: list[Damage]


# The bytes checked so far, and what is being checked.
Progress = Callable[[int, str], None]
# The directory as it is now.
Reopen = Callable[[], DataDirectory]


def verify(directory: DataDirectory, reopen: Reopen, progress: Progress) -> Iterator[Check]:
    """Check everything. `reopen` gives the directory as it is later: files that a running broker removed meanwhile are not damaged."""
    store, ends = str(directory.copy.path), str(directory.path / "synced-ends")
    yield _check("store pages", store, lambda: check_pages(directory))
    yield _check("store structure", store, lambda: check_structure(directory))
    if directory.copy.failure is not None:
        # All other checks need its rows.
        if directory.marker is not None and directory.marker.commit_seq:
            text = f"the acknowledged commits up to {directory.marker.commit_seq} cannot be read"
            yield Check("commits", 0, 0, [Damage(store, "table commits", text)])
        return
    yield _check("commits", store, lambda: check_commits(directory))
    for topic in ROW_TOPICS:
        rows = _check(f"rows of {topic}", store, partial(check_rows, directory, topic))
        # Most stores have no share groups.
        if topic != SHARE_STATE or rows.checked or rows.damages:
            yield rows
    yield _check("acknowledged ends", ends, lambda: check_ends(directory))
    try:
        yield _topic_files(directory)
        yield from _segments(directory, reopen, progress)
    except StoreDamageError as error:
        yield Check("segments", 0, 0, [Damage(store, "tables of partitions and segments", str_of(error))])


def _check(part: str, file: str, run: Callable[[], Found]) -> Check:
    try:
        count, size, damages = run()
    except StorageError as error:
        return Check(part, 0, 0, [Damage(file, part, str_of(error))])
    return Check(part, count, size, [Damage(file, place, damage) for place, damage in damages])


def _topic_files(directory: DataDirectory) -> Check:
    damages, count, size = [], 0, 0
    for topic in directory.topics:
        path = directory.path / "segments" / topic.topic_id.hex() / TOPIC_FILE_NAME
        try:
            content = path.read_bytes()
        except OSError:
            # A start writes a missing one again.
            continue
        count, size = count + 1, size + len(content)
        found = TopicDescription.decode(content)
        if found is None:
            damages.append(Damage(str(path), "whole file", "fails its checksum"))
        elif found.topic_id != topic.topic_id:
            damages.append(Damage(str(path), "whole file", f"describes the topic id {found.topic_id.hex()}"))
    return Check("topic files", count, size, damages)


def _segments(directory: DataDirectory, reopen: Reopen, progress: Progress) -> Iterator[Check]:
    listed = {one.partition_id: one for one in directory.listed_partitions()}
    done = 0
    found: list[tuple[StoredPartition, int, int, list[SegmentDamage]]] = []
    for partition in directory.partitions():
        damages: list[SegmentDamage] = []
        before = done
        for at, segment in enumerate(partition.segments):
            damage = check_segment(partition, segment, listed[partition.partition_id].segments[at])
            damages += [damage] if damage is not None else []
            done += segment.size_bytes
            progress(done, f"{partition.topic}-{partition.partition}")
        found.append((partition, len(partition.segments), done - before, damages))
    if directory.is_in_use and any(damages for *_, damages in found):
        found = _confirmed(found, reopen)
    by_topic: dict[str, list[tuple[StoredPartition, int, int, list[SegmentDamage]]]] = {}
    for one in found:
        by_topic.setdefault(one[0].topic, []).append(one)
    for topic, some in by_topic.items():
        yield Check(
            f"segments of {topic}",
            sum(count for _, count, _, _ in some),
            sum(size for _, _, size, _ in some),
            [Damage(str(damage.path), damage.place, damage.damage) for *_, damages in some for damage in damages],
        )


def _confirmed(
    found: list[tuple[StoredPartition, int, int, list[SegmentDamage]]], reopen: Reopen
) -> list[tuple[StoredPartition, int, int, list[SegmentDamage]]]:
    """The same with damages only of segments that are still listed: retention or compaction may have removed the others."""
    with reopen() as later:
        now = {one.partition_id: one for one in later.listed_partitions()}
    confirmed = []
    for partition, count, size, damages in found:
        listed = now.get(partition.partition_id)
        segments = listed.segments if listed is not None else ()
        kept = [damage for damage in damages if any(is_same_segment(damage.segment, segment) for segment in segments)]
        confirmed.append((partition, count, size, kept))
    return confirmed


def unlisted_files(directory: DataDirectory) -> list[Path]:
    """Directories below segments/ that belong to no topic of the store, and originals of repaired files."""
    root = directory.path / "segments"
    known = {topic.topic_id.hex() for topic in directory.topics}
    try:
        names = sorted(os.listdir(root))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StorageError(f"cannot read {root}: {error.strerror}") from error
    return [root / name for name in names if name not in known]
