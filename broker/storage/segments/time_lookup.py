"""Look-up of offsets by time, exact within compressed batches: the index finds the batch, its records are decoded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from broker.protocol.wire_types import DecodeError
from broker.storage.segments.bounded_records import scanned
from broker.storage.segments.segment import Segment
from broker.storage.segments.verification import StoredBatch

NOTHING = (-1, -1)

# (segment, end position, (max timestamp, base offset of its batch))
VisibleSegments: TypeAlias = Iterable[tuple[Segment, int, tuple[int, int]]]


def first_since(segments: VisibleSegments, log_start: int, timestamp: int) -> tuple[int, int] | None:
    """Return (offset, timestamp) of the first record at or after both `log_start` and `timestamp`."""
    for segment, visible, newest in segments:
        if newest[0] >= timestamp:
            found = _first_not_older(segment, visible, log_start, timestamp)
            if found is not None:
                return found
    return None


def _first_not_older(segment: Segment, visible: int, log_start: int, timestamp: int) -> tuple[int, int] | None:
    for batch in segment.find_timestamp(timestamp, visible):
        if batch.header.next_offset > log_start:
            for offset, stamp in timestamps(batch):
                if stamp >= timestamp and offset >= log_start:
                    return offset, stamp
    return None


def _newest_batch(segment: Segment, visible: int, known: tuple[int, int], log_start: int) -> tuple[int, int]:
    """Return (timestamp, base offset) of the first batch with the largest timestamp from the log start on.

    `known` is that pair for the whole segment.
    """
    if segment.base_offset >= log_start or known[1] >= log_start:
        return known
    return _scan_newest(segment, visible, log_start)


def _scan_newest(segment: Segment, visible: int, log_start: int) -> tuple[int, int]:
    best = NOTHING
    start = segment.index.at_offset(log_start) or (segment.base_offset, 0)
    for batch in segment.batches(*start):
        header = batch.header
        if batch.position >= visible:
            break
        if header.next_offset <= log_start or header.max_timestamp <= best[0]:
            continue
        newest = header.max_timestamp
        if header.base_offset < log_start:
            stamps = timestamps(batch)
            newest = max((stamp for offset, stamp in stamps if offset >= log_start), default=NOTHING[0])
        if newest > best[0]:
            best = (newest, header.base_offset)
    return best


def first_newest(segments: VisibleSegments, log_start: int) -> tuple[int, int] | None:
    """Return (offset, timestamp) of the first record with the largest timestamp at or after `log_start`."""
    found = []
    for segment, visible, newest in segments:
        newest = _newest_batch(segment, visible, newest, log_start)
        if newest != NOTHING:
            found.append((segment, visible, newest))
    while found:
        at = max(range(len(found)), key=lambda index: (found[index][2][0], -index))
        segment, visible, (timestamp, base_offset) = found[at]
        spot = segment.find_offset(base_offset, visible)
        assert spot is not None
        batch = next(segment.batches(spot.base_offset, spot.position, spot.size))
        for offset, stamp in timestamps(batch):
            if stamp == timestamp and offset >= log_start:
                return offset, timestamp
        if batch.header.max_timestamp >= timestamp:
            return batch.header.last_offset, timestamp
        # The record is lost: a repair keeps its time as the age of the segment.
        newest = _scan_newest(segment, visible, log_start)
        found[at : at + 1] = [(segment, visible, newest)] if newest != NOTHING else []
    return None


def timestamps(batch: StoredBatch) -> Iterator[tuple[int, int]]:
    """Yield (offset, timestamp) of the records of a batch; an undecodable one counts as a record at each of its ends."""
    try:
        for offset, timestamp, _ in scanned(batch.content):
            yield offset, timestamp
    except DecodeError:
        yield batch.header.base_offset, batch.header.max_timestamp
        yield batch.header.last_offset, batch.header.max_timestamp
