"""What a segment file holds, whatever the store says of it: its whole batches, and the offsets that are missing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from broker.light_named_tuples import NamedTuple
from broker.protocol.record_batch import HEADER_BYTES, BatchHeader, check_crc, parse_header
from broker.storage.files import Files, OpenFile
from broker.storage.partition_log import LEADER_EPOCH
from broker.storage.segments.segment_file import Place, segment_name
from broker.storage.segments.trailer import TRAILER_BYTES, chained, parse_trailer
from broker.storage.segments.verification import BATCH_MARK, BATCH_MARK_AT, SCAN_BYTES, StoredBatch, may_be_batch

MAX_TORN_OFFSETS = 1_000_000
UP_TO_LAST_OFFSET_BYTES = 27  # of a batch header: base offset to last offset delta
# No offset reaches it.
ANY_OFFSET = 1 << 62

Offsets = tuple[int, int]  # first and last


class Source(NamedTuple):
    """One segment file, and which of its batches count."""

    place: Place
    base_offset: int
    revision: int
    before_offset: int = ANY_OFFSET  # batches from here on are in the next segment
    # What follows a bad batch from here on was never acknowledged. None: unknown, so that every whole batch counts.
    acknowledged_until: int | None = None

    @property
    def path(self) -> str:
        return os.path.join(self.place.directory, segment_name(self.base_offset, self.revision))


class Survey(NamedTuple):
    """`torn_until`: where the batches that are not kept end, if they may have been acknowledged."""

    source: Source
    end_offset: int
    whole_bytes: int  # from the start of the file, without a gap
    lost: list[Offsets]
    batches: int
    is_foreign: bool = False  # this file belongs elsewhere
    last: BatchHeader | None = None
    torn_until: int = 0
    is_mended: bool = False  # its batches do not lie in the file one after the other as they should
    is_cut: bool = False  # whole batches follow that no commit has

    @property
    def is_contiguous(self) -> bool:
        return not self.lost and not self.is_mended

    @classmethod
    def nothing(cls, source: Source, *, is_foreign: bool = False) -> Survey:
        return cls(source, source.base_offset, 0, [], 0, is_foreign)


def survey(
    files: Files,
    source: Source,
    is_other: Callable[[int, BatchHeader, int], bool],
    is_uncommitted: Callable[[BatchHeader], bool],
) -> Survey:
    """Read a whole file.

    A file holds nothing of this segment if its trailer names another one, or if `is_other` (end of a batch, its header,
    digest up to it) recognizes a batch or a digest as that of another file. It ends at the first batch that
    `is_uncommitted`.
    """
    if _is_of_another(files, source):
        return Survey.nothing(source, is_foreign=True)
    offset, whole, count, digest = source.base_offset, 0, 0, 0
    is_mended = False
    lost: list[Offsets] = []
    last: BatchHeader | None = None
    cut: tuple[int, int] | None = None  # position and offset behind the batches that no commit has
    for position, header, content in whole_batches(files, source):
        end = position + header.size_bytes
        digest = chained(digest, header.base_offset, header.batch_length, header.crc)
        is_whole = position == (whole if cut is None else cut[0])
        if is_other(end if is_whole else -1, header, digest):
            return Survey.nothing(source, is_foreign=True)
        last = header
        if cut is not None or is_uncommitted(header):
            cut = end, header.next_offset
            continue
        is_mended = is_mended or not is_whole or files.get(source.path).read(8, position) != content[:8]
        if header.base_offset > offset:
            lost.append((offset, header.base_offset - 1))
        if is_whole:
            whole = end
        offset = header.next_offset
        count += 1
    behind, until = (whole, offset) if cut is None or source.acknowledged_until is not None else cut
    torn_until = _torn_until(files, source, behind, until) if not lost else until
    if cut is not None:
        source = source._replace(before_offset=offset)
    return Survey(source, offset, whole, lost, count, False, last, torn_until, is_mended, cut is not None)


def _torn_until(files: Files, source: Source, position: int, offset: int) -> int:
    """The end of the batch that a cut left behind the whole ones, as its header says; `offset` if there is none.

    Only if it is unknown what was acknowledged: its offsets may have been.
    """
    if source.acknowledged_until is not None or not os.path.exists(source.path):
        return offset
    head = files.get(source.path).read(HEADER_BYTES, position)
    if len(head) < UP_TO_LAST_OFFSET_BYTES:
        return offset
    header = parse_header(head.ljust(HEADER_BYTES, b"\0"))
    is_plausible = (
        (header.base_offset, header.magic, header.partition_leader_epoch) == (offset, 2, LEADER_EPOCH)
        and 0 <= header.last_offset_delta < MAX_TORN_OFFSETS
        and (len(head) < HEADER_BYTES or header.record_count == header.last_offset_delta + 1)
    )
    return header.next_offset if is_plausible else offset


def _is_of_another(files: Files, source: Source) -> bool:
    """The trailer names another segment, or the file begins with a batch of other offsets that the next one confirms."""
    if not os.path.exists(source.path):
        return False
    file = files.get(source.path)
    size_bytes = file.size()
    trailer = parse_trailer(file.read(TRAILER_BYTES, max(0, size_bytes - TRAILER_BYTES)))
    if trailer is not None:
        return trailer[:3] != (*source.place[1:], source.base_offset)
    first = _batch_at(file, 0, size_bytes)
    if first is None or first.header.base_offset == source.base_offset:
        return False
    return _placed(file, first, size_bytes, source.base_offset, is_behind_damage=False) is None


def whole_batches(files: Files, source: Source) -> Iterator[StoredBatch]:
    """Yield the undamaged batches in order, whatever lies between them.

    Batches that follow each other in the file do so in offsets, too. So one with another base offset, which its checksum
    does not cover, gets the right one.
    """
    if not os.path.exists(source.path):
        return
    file = files.get(source.path)
    size_bytes = file.size()
    offset, position, is_behind_damage = source.base_offset, 0, False
    while position >= 0:
        batch = _batch_at(file, position, size_bytes)
        if batch is not None and batch.header.base_offset != offset:
            batch = _placed(file, batch, size_bytes, offset, is_behind_damage=is_behind_damage)
        if batch is not None and batch.header.last_offset < source.before_offset:
            is_behind_damage = False
            yield batch
            offset = batch.header.next_offset
            position += batch.header.size_bytes
        elif source.acknowledged_until is not None and offset >= source.acknowledged_until:
            return
        else:
            is_behind_damage = True
            position = _next_mark(file, position + 1, size_bytes)


def _placed(
    file: OpenFile, batch: StoredBatch, size_bytes: int, offset: int, *, is_behind_damage: bool
) -> StoredBatch | None:
    """A batch with another base offset than expected, as it should be; None if it does not belong here."""
    header = batch.header
    following = _batch_at(file, batch.position + header.size_bytes, size_bytes)
    next_offset = following.header.base_offset if following is not None else None
    if is_behind_damage:
        # Any later offset is right, if the batch behind agrees.
        is_right = 0 < header.base_offset - offset < MAX_TORN_OFFSETS and next_offset in (None, header.next_offset)
        return batch if is_right else None
    moved = _moved(batch, offset)
    is_one_bit = (header.base_offset ^ offset).bit_count() == 1
    return moved if next_offset == moved.header.next_offset or (next_offset is None and is_one_bit) else None


def _moved(batch: StoredBatch, offset: int) -> StoredBatch:
    content = offset.to_bytes(8, "big") + batch.content[8:]
    return StoredBatch(batch.position, parse_header(content), content)


def _batch_at(file: OpenFile, position: int, size_bytes: int) -> StoredBatch | None:
    head = file.read(HEADER_BYTES, position) if position + HEADER_BYTES <= size_bytes else b""
    if len(head) < HEADER_BYTES:
        return None
    header = parse_header(head)
    if not may_be_batch(header, size_bytes - position):
        return None
    content = file.read(header.size_bytes, position)
    return StoredBatch(position, header, content) if check_crc(content, 0, header) else None


def _next_mark(file: OpenFile, position: int, size_bytes: int) -> int:
    """The next position where a batch may begin; -1 if there is none."""
    position += BATCH_MARK_AT
    while position < size_bytes:
        window = file.read(min(SCAN_BYTES, size_bytes - position), position)
        at = window.find(BATCH_MARK)
        if at >= 0:
            return position + at - BATCH_MARK_AT
        if len(window) < len(BATCH_MARK):
            break
        position += len(window) - len(BATCH_MARK) + 1
    return -1
