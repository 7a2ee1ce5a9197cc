"""What store and synced ends say about the batches in segment files, so that a file without a trailer is recognized."""

from __future__ import annotations

from broker.light_named_tuples import NamedTuple
from broker.protocol.record_batch import HEADER_BYTES, parse_header
from broker.storage.errors import DamageError
from broker.storage.files import Files, OpenFile
from broker.storage.segments.shared import Shared
from broker.storage.segments.trailer import chained
from broker.storage.segments.verification import SCAN_BYTES, checked_batches, may_be_batch
from broker.storage.store.values import as_bytes, as_int

# Topic id, partition and base offset.
Key = tuple[bytes, int, int]


class Mark(NamedTuple):
    """Which batch of a segment ends at a position, or the digest of all batches up to it."""

    key: Key
    position: int
    batch: tuple[int, int, int] | None  # next offset, size, CRC
    digest: int | None


class Reading(NamedTuple):
    """The whole batches at the start of a file, and the marks that they have."""

    base_offset: int | None = None  # None: there is no whole batch
    batches: int = 0
    whole_bytes: int = 0
    confirmed: frozenset[Mark] = frozenset()


NOTHING = Reading()


class Witnesses:
    """All marks of the last run."""

    def __init__(self, shared: Shared) -> None:
        self._files: Files = shared.files
        self._marks: dict[Key, list[Mark]] = {}
        self._at: dict[tuple[int, int], list[Mark]] = {}  # by base offset and position
        self._revisions: dict[Key, int] = {}
        rows = shared.store.query(
            "SELECT p.topic_id, p.partition, s.base_offset, s.revision, s.size_bytes, s.digest"
            " FROM partitions AS p JOIN segments AS s ON s.partition_id = p.partition_id"
        )
        for row in rows:
            key = as_bytes(row[0]), as_int(row[1]), as_int(row[2])
            self._revisions[key] = as_int(row[3])
            if row[4] and row[5] is not None:
                self._add(Mark(key, as_int(row[4]), None, as_int(row[5])))
        for end in shared.ends.slots():
            key = end.topic_id, end.partition, end.base_offset
            self._revisions.setdefault(key, 0)
            if end.last_size:
                self._add(Mark(key, end.position, (end.end_offset, end.last_size, end.last_crc), None))

    def _add(self, mark: Mark) -> None:
        self._marks.setdefault(mark.key, []).append(mark)
        self._at.setdefault((mark.key[2], mark.position), []).append(mark)

    def revision(self, key: Key) -> int | None:
        """The revision that this segment had; None if nothing knows the segment."""
        return self._revisions.get(key)

    def confirm(self, path: str, key: Key) -> bool:
        """Whether the file has the batch with which this segment was known to end. It reads only the batch header."""
        file = self._files.get(path)
        for mark in self._marks.get(key, ()):
            if mark.batch is not None:
                head = file.read(HEADER_BYTES, mark.position - mark.batch[1])
                if len(head) == HEADER_BYTES:
                    header = parse_header(head)
                    if (header.next_offset, header.size_bytes, header.crc) == mark.batch:
                        return True
        return False

    def read(self, path: str) -> Reading:
        file = self._files.get(path)
        size_bytes = file.size()
        head = file.read(HEADER_BYTES, 0)
        if len(head) < HEADER_BYTES or not may_be_batch(parse_header(head), size_bytes):
            return NOTHING
        return self._read(file, parse_header(head).base_offset, size_bytes)

    def _read(self, file: OpenFile, base_offset: int, size_bytes: int) -> Reading:
        count = whole = digest = 0
        confirmed: list[Mark] = []
        try:
            for position, header, _ in checked_batches(file.read, _stop, base_offset, 0, size_bytes, SCAN_BYTES):
                count, whole = count + 1, position + header.size_bytes
                digest = chained(digest, header.base_offset, header.batch_length, header.crc)
                batch = header.next_offset, header.size_bytes, header.crc
                confirmed += [
                    mark
                    for mark in self._at.get((base_offset, whole), ())
                    if (mark.batch or batch) == batch and (mark.digest is None or mark.digest == digest)
                ]
        except DamageError:
            pass
        return Reading(base_offset, count, whole, frozenset(confirmed)) if count else NOTHING

    def share_batches(self, path: str, other: str) -> bool:
        """Whether a batch of the other file is at the same position in this one, by its header."""
        file, whole = self._files.get(path), self._files.get(other)
        position, size_bytes = 0, whole.size()
        while True:
            head = whole.read(HEADER_BYTES, position)
            if len(head) < HEADER_BYTES or not may_be_batch(parse_header(head), size_bytes - position):
                return False
            if file.read(HEADER_BYTES, position) == head:
                return True
            position += parse_header(head).size_bytes

    def contradict(self, key: Key, found: Reading) -> bool:
        """Whether the whole batches of a file are others than those of this segment."""
        return any(
            mark.position <= found.whole_bytes and mark not in found.confirmed for mark in self._marks.get(key, ())
        )


def _stop(position: int) -> DamageError:
    return DamageError(f"no whole batch at position {position}")
