"""Missing, truncated and damaged segment files: find them at the start, and repair what is left if losses are accepted.

Lost offsets stay used: an empty batch covers them, like the ones that Kafka's compaction leaves. So no log end moves
back, readers skip the gap, and no new record gets an offset that another record had.
"""

from __future__ import annotations

import os

from broker.light_named_tuples import NamedTuple
from broker.protocol.record_batch import BatchHeader, parse_header
from broker.storage.errors import DamageError
from broker.storage.files import Files, OpenFile
from broker.storage.segments.batch_fields import empty_batch
from broker.storage.segments.end_checks import CheckedEnds
from broker.storage.segments.partition import SegmentPartition
from broker.storage.segments.segment import Segment
from broker.storage.segments.segment_file import segment_name
from broker.storage.segments.shared import Shared
from broker.storage.segments.survey import Offsets, Survey, whole_batches
from broker.storage.store.catalog import Topic, Topics
from broker.storage.store.values import as_bytes, as_int

MAX_RANGES_NAMED = 20


class Short(NamedTuple):
    """A segment file that is missing or shorter than the store says."""

    topic: Topic
    partition: int
    message: str


def short_segments(shared: Shared, topics: Topics, ends: CheckedEnds) -> list[Short]:
    """Compare the sizes of all segment files with the store, without reading them."""
    rows = shared.store.query(
        "SELECT p.partition_id, p.topic_id, p.partition, s.base_offset, s.revision, s.size_bytes, s.end_offset"
        " FROM partitions AS p JOIN segments AS s ON s.partition_id = p.partition_id"
        " ORDER BY p.partition_id, s.base_offset"
    )
    short = []
    for row in rows:
        number, topic_id = as_int(row[0]), as_bytes(row[1])
        partition, base_offset, revision, size_bytes, end_offset = map(as_int, row[2:])
        path = f"{shared.root}/{topic_id.hex()}/{partition}/{segment_name(base_offset, revision)}"
        try:
            length = os.stat(path).st_size
            found = f"is truncated: it has {length} bytes of {size_bytes}"
        except FileNotFoundError:
            length, found = -1, "is missing"
        topic = topics.by_id(topic_id)
        if length < size_bytes and topic is not None:
            end = ends.of(number)
            if end is not None and end.base_offset == base_offset:
                end_offset = max(end_offset, end.end_offset)
            offsets = f"offsets {base_offset} to {end_offset - 1} of " if end_offset > base_offset else ""
            short.append(Short(topic, partition, f"{path} {found} ({offsets}{topic.name}-{partition})"))
    return short


def refuse(short: list[Short]) -> DamageError:
    """One line for all of them."""
    files = "segment file is" if len(short) == 2 else "segment files are"
    more = f"; {len(short) - 1} more {files} missing or truncated" if len(short) > 1 else ""
    return DamageError(short[0].message + more)


def new_segment(
    partition: SegmentPartition, files: Files, base_offset: int, revision: int, compacted_at_ms: int
) -> Segment:
    """A segment without batches, whose file may exist."""
    return Segment(
        files,
        partition.place,
        base_offset,
        interval_bytes=partition.policy.index_interval_bytes,
        revision=revision,
        compacted_at_ms=compacted_at_ms,
    )


def rewrite(
    made: Segment, found: Survey, partition: SegmentPartition, *, end_offset: int, known_until: int
) -> list[Offsets]:
    """Write a new file with the whole batches of a damaged one, ending at `end_offset`; return what is lost.

    The partition's state of producers includes the batches before `known_until` already.
    """
    files = made.files
    files.make_directories(made.place.directory)
    file = made.create()
    lost: list[Offsets] = []
    for _, header, content in whole_batches(files, found.source) if not found.is_foreign else ():
        if header.base_offset > made.end_offset:
            lost.append((made.end_offset, header.base_offset - 1))
            _cover(made, file, header.base_offset)
            partition.transactions.forget_sequences()
        _add(made, file, content, header)
        if header.base_offset >= known_until:
            partition.transactions.replay(header, content)
    if end_offset > made.end_offset:
        lost.append((made.end_offset, end_offset - 1))
        _cover(made, file, end_offset)
        partition.transactions.forget_sequences()
    return lost


def spell(lost: list[Offsets]) -> str:
    named = ", ".join(str(a) if a == b else f"{a} to {b}" for a, b in lost[:MAX_RANGES_NAMED])
    more = len(lost) - MAX_RANGES_NAMED
    return f"offsets {named}" + (f" and {more} more ranges" if more > 0 else "")


def _add(made: Segment, file: OpenFile, batch: bytes, header: BatchHeader) -> None:
    file.write(batch, made.size_bytes)
    made.note(header, made.size_bytes, len(batch))


def _cover(made: Segment, file: OpenFile, until: int) -> None:
    while made.end_offset < until:
        batch = empty_batch(made.end_offset, until)
        _add(made, file, batch, parse_header(batch))
