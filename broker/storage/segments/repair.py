"""Missing, truncated and damaged segment files: find them at the start, and repair what is left if losses are accepted.

Lost offsets stay used: an empty batch covers them, like the ones that Kafka's compaction leaves. So no log end moves
back, readers skip the gap, and no new record gets an offset that another record had.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from broker.protocol.record_batch import HEADER_BYTES, BatchHeader, build_batch, check_crc, parse_header
from broker.storage.errors import DamageError
from broker.storage.files import OpenFile
from broker.storage.partition_log import LEADER_EPOCH
from broker.storage.segments.leftovers import damaged_name, note_damaged_file
from broker.storage.segments.partition import SegmentPartition
from broker.storage.segments.segment import Segment
from broker.storage.segments.segment_file import segment_name
from broker.storage.segments.shared import Shared
from broker.storage.segments.synced_ends import SyncedEnd
from broker.storage.segments.verification import SCAN_BYTES
from broker.storage.store.catalog import Topic, Topics
from broker.storage.store.values import as_bytes, as_int

MAX_OFFSETS_PER_BATCH = 2**31
MAX_RANGES_NAMED = 20
# Every batch has these bytes at the same place: the leader epoch and the magic.
_MARK = LEADER_EPOCH.to_bytes(4, "big") + b"\x02"
_MARK_AT = 12


class Short(NamedTuple):
    """A segment file that is missing or shorter than the store says."""

    topic: Topic
    partition: int
    message: str


def short_segments(shared: Shared, topics: Topics) -> list[Short]:
    """Compare the sizes of all segment files with the store, without reading them."""
    rows = shared.store.query(
        "SELECT p.topic_id, p.partition, s.base_offset, s.revision, s.size_bytes, s.end_offset"
        " FROM partitions AS p JOIN segments AS s ON s.partition_id = p.partition_id"
        " ORDER BY p.partition_id, s.base_offset"
    )
    short = []
    for row in rows:
        topic_id = as_bytes(row[0])
        partition, base_offset, revision, size_bytes, end_offset = map(as_int, row[1:])
        path = f"{shared.root}/{topic_id.hex()}/{partition}/{segment_name(base_offset, revision)}"
        try:
            length = os.stat(path).st_size
            found = f"is truncated: it has {length} bytes of {size_bytes}"
        except FileNotFoundError:
            length, found = -1, "is missing"
        topic = topics.by_id(topic_id)
        if length < size_bytes and topic is not None:
            offsets = f"offsets {base_offset} to {end_offset - 1} of " if end_offset > base_offset else ""
            short.append(Short(topic, partition, f"{path} {found} ({offsets}{topic.name}-{partition})"))
    return short


def refuse(short: list[Short]) -> DamageError:
    """One line for all of them."""
    more = f"; {len(short) - 1} more segment files are missing or truncated" if len(short) > 1 else ""
    return DamageError(short[0].message + more)


def repair_partition(partition: SegmentPartition, shared: Shared, end: SyncedEnd | None) -> None:
    """Read everything up to the checkpoint, and replace each damaged segment by one with its whole batches."""
    for segment in list(partition.segments):
        try:
            segment.file()
            segment.verify()
            _ = segment.index
            segment.drop_index()
        except DamageError:
            size_bytes, end_offset = segment.size_bytes, segment.end_offset
            if end is not None and end.base_offset == segment.base_offset and end.end_offset > end_offset:
                size_bytes, end_offset = end.position, end.end_offset
            repair_segment(partition, segment, shared, size_bytes, end_offset)


def repair_segment(
    partition: SegmentPartition, segment: Segment, shared: Shared, size_bytes: int, end_offset: int
) -> None:
    """Replace a segment by a new file with the whole batches of its first `size_bytes`, ending at `end_offset`."""
    harm = _harm(segment, size_bytes)
    made = Segment(
        segment.files,
        segment.place,
        segment.base_offset,
        interval_bytes=segment.interval_bytes,
        revision=segment.revision + 1,
        compacted_at_ms=segment.compacted_at_ms,
    )
    shared.files.make_directories(made.place.directory)
    file = made.create()
    lost: list[tuple[int, int]] = []
    for batch, header in _whole_batches(segment, size_bytes, end_offset):
        if header.base_offset > made.end_offset:
            lost.append((made.end_offset, header.base_offset - 1))
            _cover(made, file, header.base_offset)
        _add(made, file, batch, header)
        if header.producer_id >= 0 and header.base_offset >= segment.end_offset:
            partition.producers.note(header)
    if end_offset > made.end_offset:
        lost.append((made.end_offset, end_offset - 1))
        _cover(made, file, end_offset)
    if made.max_timestamp < 0:
        # Retention still needs the age of a segment that lost all its records.
        made.max_timestamp, made.max_timestamp_offset = segment.max_timestamp, segment.base_offset
    made.save_index()
    if segment is not partition.active:
        made.seal()
    shared.files.sync(file)
    shared.files.sync_directory(made.place.directory)
    shared.loaded_indexes.pop(segment, None)
    partition.segments[partition.segments.index(segment)] = made
    partition.segment_changed(made)
    partition.advance()
    shared.pending.written[partition] = None
    note_damaged_file(shared, segment.path)
    kept = "" if harm == "is missing" else f"; it is kept as {os.path.basename(damaged_name(segment.path))}"
    shared.store.evidence.lose(f"{segment.path} {harm}: lost {_spell(lost)} of {partition.name}{kept}", accepted=True)


def _harm(segment: Segment, size_bytes: int) -> str:
    try:
        if segment.holds_other_records():
            return "holds other records"
        return "is damaged" if os.stat(segment.path).st_size >= size_bytes else "is truncated"
    except FileNotFoundError:
        return "is missing"


def _spell(lost: list[tuple[int, int]]) -> str:
    if not lost:
        return "nothing"
    named = ", ".join(str(a) if a == b else f"{a} to {b}" for a, b in lost[:MAX_RANGES_NAMED])
    return f"offsets {named}" + (
        f" and {len(lost) - MAX_RANGES_NAMED} more ranges" if len(lost) > MAX_RANGES_NAMED else ""
    )


def _add(made: Segment, file: OpenFile, batch: bytes, header: BatchHeader) -> None:
    file.write(batch, made.size_bytes)
    made.note(header, made.size_bytes, len(batch))


def _cover(made: Segment, file: OpenFile, until: int) -> None:
    while made.end_offset < until:
        last_offset = min(until, made.end_offset + MAX_OFFSETS_PER_BATCH) - 1
        batch = build_batch([], base_offset=made.end_offset, last_offset=last_offset, leader_epoch=LEADER_EPOCH)
        _add(made, file, batch, parse_header(batch))


def _whole_batches(segment: Segment, size_bytes: int, end_offset: int) -> Iterator[tuple[bytes, BatchHeader]]:
    """Yield the undamaged batches in order, whatever lies between them."""
    if not os.path.exists(segment.path) or segment.holds_other_records():
        return
    file = segment.files.get(segment.path)
    size_bytes = min(size_bytes, file.size())
    offset, position = segment.base_offset, 0
    while position >= 0:
        header = _batch_at(file, position, size_bytes, range(offset, end_offset))
        if header is None:
            position = _next_mark(file, position + 1, size_bytes)
        else:
            yield file.read(header.size_bytes, position), header
            offset = header.next_offset
            position += header.size_bytes


def _batch_at(file: OpenFile, position: int, size_bytes: int, offsets: range) -> BatchHeader | None:
    head = file.read(HEADER_BYTES, position) if position + HEADER_BYTES <= size_bytes else b""
    if len(head) < HEADER_BYTES:
        return None
    header = parse_header(head)
    if (
        header.magic != 2
        or header.partition_leader_epoch != LEADER_EPOCH
        or header.base_offset not in offsets
        or header.last_offset not in offsets
        or header.last_offset < header.base_offset
        or not HEADER_BYTES <= header.size_bytes <= size_bytes - position
    ):
        return None
    return header if check_crc(file.read(header.size_bytes, position), 0, header) else None


def _next_mark(file: OpenFile, position: int, size_bytes: int) -> int:
    """The next position where a batch may begin; -1 if there is none."""
    position += _MARK_AT
    while position < size_bytes:
        window = file.read(min(SCAN_BYTES, size_bytes - position), position)
        at = window.find(_MARK)
        if at >= 0:
            return position + at - _MARK_AT
        if len(window) < len(_MARK):
            break
        position += len(window) - len(_MARK) + 1
    return -1
