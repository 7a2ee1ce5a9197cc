"""Checks of one segment file: trailer, CRCs, order of offsets, digest."""

from __future__ import annotations

from pathlib import Path

from broker.light_named_tuples import NamedTuple
from broker.storage.errors import StorageError
from broker.storage.inspection.partitions import StoredPartition, StoredSegment
from broker.storage.inspection.segment_reader import SegmentReader
from broker.storage.segments.trailer import TRAILER_BYTES, UNKNOWN_DIGEST, Trailer, chained, parse_trailer


class SegmentDamage(NamedTuple):
    path: Path
    place: str
    damage: str
    segment: StoredSegment


def check_segment(partition: StoredPartition, segment: StoredSegment, listed: StoredSegment) -> SegmentDamage | None:
    """The first damage of a segment. `listed` is the segment as the store lists it: the digest covers no later batches."""

    def damaged(place: str, damage: str) -> SegmentDamage:
        return SegmentDamage(segment.path, place, damage, segment)

    offsets = f"offsets {segment.base_offset} to {segment.end_offset - 1}"
    try:
        reader = SegmentReader(segment.path)
    except StorageError as error:
        return damaged(offsets, str(error)) if segment.path.exists() else damaged(offsets, "the file is missing")
    try:
        if reader.size < segment.size_bytes:
            return damaged(offsets, f"the file is truncated: it has {reader.size} bytes of {segment.size_bytes}")
        if segment.has_trailer:
            problem = _trailer_problem(reader, partition, segment)
            if problem is not None:
                return damaged(f"position {segment.size_bytes}", problem)
        return _batches_damage(reader, segment, listed)
    finally:
        reader.close()


def _trailer_problem(reader: SegmentReader, partition: StoredPartition, segment: StoredSegment) -> str | None:
    expected = Trailer(
        partition.topic_id,
        partition.partition,
        segment.base_offset,
        segment.revision,
        segment.size_bytes,
        segment.end_offset,
        UNKNOWN_DIGEST if segment.digest is None else segment.digest,
    )
    content = reader.read(TRAILER_BYTES, segment.size_bytes)
    if content == expected.pack():
        return None
    found = parse_trailer(reader.read(TRAILER_BYTES, max(0, reader.size - TRAILER_BYTES)))
    if found is not None and found != expected:
        return f"the file holds other records than were written: {found.spell()}"
    return "the trailer is damaged or missing"


def _batches_damage(reader: SegmentReader, segment: StoredSegment, listed: StoredSegment) -> SegmentDamage | None:
    offset, position, digest = segment.base_offset, 0, 0
    try:
        for batch in reader.batches(segment.base_offset, 0, segment.size_bytes):
            header = batch.header
            offset, position = header.next_offset, batch.position + header.size_bytes
            digest = chained(digest, header.base_offset, header.batch_length, header.crc)
            if position == listed.size_bytes and listed.digest not in (None, digest):
                return SegmentDamage(
                    segment.path,
                    f"offsets {segment.base_offset} to {offset - 1}",
                    "the batches are not those written: their digest differs from that of the store",
                    segment,
                )
    except StorageError as error:
        place = f"position {position}, offset {offset}"
        return SegmentDamage(segment.path, place, _why(error), segment)
    if offset != segment.end_offset:
        place = f"position {position}"
        return SegmentDamage(
            segment.path, place, f"the batches end at offset {offset}, not {segment.end_offset}", segment
        )
    return None


def _why(error: StorageError) -> str:
    text = Exception.__str__(error)
    return "the batch does not match what was written" if "does not match what was written" in text else text


def is_same_segment(one: StoredSegment, other: StoredSegment) -> bool:
    return (one.path, one.base_offset, one.revision) == (other.path, other.base_offset, other.revision)
