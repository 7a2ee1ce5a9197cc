"""The file of one segment: its name, opening with checks, its end, and its trailer once it is sealed."""

from __future__ import annotations

import logging
import os

from broker.light_named_tuples import NamedTuple
from broker.storage.errors import DamageError, StorageError
from broker.storage.files import Files, OpenFile
from broker.storage.segments.trailer import TRAILER_BYTES, UNKNOWN_DIGEST, Trailer, chained, parse_trailer
from broker.storage.segments.verification import SCAN_BYTES, checked_batches

logger = logging.getLogger(__name__)

# Preallocation doubles the segment, between these bounds.
PREALLOCATED_BYTES = (64 << 10, 1 << 20)


class Place(NamedTuple):
    """Where the segment files of one partition are, and what binds them to it."""

    directory: str
    topic_id: bytes
    partition: int


class SegmentFile:
    """What the store says about a segment file, and the file itself."""

    __slots__ = (
        "_file_seen",
        "_is_trailer_lost",
        "allocated",
        "base_offset",
        "digest",
        "end_offset",
        "files",
        "has_trailer",
        "place",
        "revision",
        "size_bytes",
    )

    def __init__(
        self,
        files: Files,
        place: Place,
        base_offset: int,
        *,
        revision: int,
        end_offset: int | None,
        size_bytes: int,
        digest: int | None,
        has_trailer: bool,
    ) -> None:
        self.files = files
        self.place = place
        self.base_offset = base_offset
        self.revision = revision
        self.end_offset = base_offset if end_offset is None else end_offset
        self.size_bytes = size_bytes
        self.digest = digest
        self.has_trailer = has_trailer
        self.allocated = size_bytes
        self._file_seen = False
        self._is_trailer_lost = False

    @property
    def path(self) -> str:
        # Needed several times for each request; os.path.join takes three times as long.
        return f"{self.place.directory}{os.sep}{segment_name(self.base_offset, self.revision)}"

    @property
    def index_path(self) -> str:
        return self.path[:-4] + ".index"

    def file(self) -> OpenFile:
        """Open the file; DamageError if it is missing, or another than the one that was sealed."""
        file = self._file()
        if self.has_trailer:
            self._check_trailer(file)
        return file

    def _file(self) -> OpenFile:
        try:
            file = self.files.get(self.path)
        except StorageError:
            if not os.path.exists(self.path):
                raise DamageError(
                    f"{self.path} is missing (offsets {self.base_offset} to {self.end_offset - 1})"
                ) from None
            raise
        return file

    def writable(self) -> OpenFile:
        """Open the file to write behind the batches; DamageError if it is shorter than they are."""
        file = self._file()
        if not self._file_seen:
            length = file.size()
            if length < self.size_bytes:
                raise self._truncated(length)
            self.allocated = length
            self._file_seen = True
        return file

    def _read(self, size: int, position: int) -> bytes:
        return self._file().read(size, position)

    def cut(self) -> None:
        """Truncate the file behind the last whole batch."""
        file = self.writable()
        if self.allocated > self.size_bytes or file.size() > self.size_bytes:
            file.truncate(self.size_bytes)
            self.allocated = self.size_bytes

    def cut_remains(self) -> bool:
        """Truncate what a crash left behind the last whole batch, unless it is preallocated zeros. True if it truncated."""
        file = self.writable()
        length = file.size()
        if length - self.size_bytes <= PREALLOCATED_BYTES[1]:
            remains = file.read(length - self.size_bytes, self.size_bytes)
            # A comparison: stripping zeros takes 30 times as long.
            if remains == bytes(len(remains)):
                self.allocated = length
                return False
        self.cut()
        return True

    def seal(self) -> OpenFile:
        """End the file with its trailer: nothing is appended any more."""
        self.cut()
        file = self._file()
        file.write(self._trailer().pack(), self.size_bytes)
        self.has_trailer = True
        return file

    def _trailer(self) -> Trailer:
        digest = UNKNOWN_DIGEST if self.digest is None else self.digest
        _, topic_id, partition = self.place
        return Trailer(topic_id, partition, self.base_offset, self.revision, self.size_bytes, self.end_offset, digest)

    def _check_trailer(self, file: OpenFile) -> None:
        expected = self._trailer()
        if file.read(TRAILER_BYTES, self.size_bytes) == expected.pack():
            self._is_trailer_lost = False
            return
        length = file.size()
        found = parse_trailer(file.read(TRAILER_BYTES, max(0, length - TRAILER_BYTES)))
        if found is not None and found != expected:
            raise DamageError(f"{self.path} holds other records than were written: {found.spell()}")
        if length < self.size_bytes:
            # Nothing proves whose batches are left.
            raise self._truncated(length)
        if not self._is_trailer_lost or length != self.size_bytes + TRAILER_BYTES:
            self._restore_trailer(file, length)

    def _restore_trailer(self, file: OpenFile, length: int) -> None:
        """Write a damaged trailer again, if the batches have the digest that the store knows."""
        try:
            digest = self._digest_of_file()
        except DamageError:
            if length != self.size_bytes + TRAILER_BYTES:
                raise
            # Bytes changed within the file: readers get the batches before the damage.
            self._is_trailer_lost = True
            return
        if digest != self.digest:
            raise DamageError(f"{self.path} is damaged: its trailer is missing, and its batches are not those written")
        logger.warning("%s: the trailer was damaged and is restored; all records are as they were written", self.path)
        file.write(self._trailer().pack(), self.size_bytes)

    def holds_other_records(self) -> bool:
        """The file in this place has undamaged batches of another partition, or of other offsets."""
        if not os.path.exists(self.path):
            return False
        file = self.files.get(self.path)
        found = parse_trailer(file.read(TRAILER_BYTES, max(0, file.size() - TRAILER_BYTES)))
        if found is not None:
            return found[:3] != self._trailer()[:3]
        try:
            return self.has_trailer and self.digest is not None and self._digest_of_file() != self.digest
        except DamageError:
            return False

    def _digest_of_file(self) -> int:
        digest = 0
        for _, header, _ in checked_batches(self._read, self.damage, self.base_offset, 0, self.size_bytes, SCAN_BYTES):
            digest = chained(digest, header.base_offset, header.batch_length, header.crc)
        return digest

    # -- damage

    def damage(self, position: int) -> DamageError:
        length = self._file().size()
        if length < self.size_bytes:
            return self._truncated(length)
        return DamageError(f"{self.path} is damaged: the batch at position {position} does not match what was written")

    def _truncated(self, length: int) -> DamageError:
        return DamageError(
            f"{self.path} is truncated: it has {length} bytes of {self.size_bytes}"
            f" (offsets up to {self.end_offset - 1})"
        )


def segment_name(base_offset: int, revision: int) -> str:
    return f"{base_offset:020d}.{revision}.log" if revision else f"{base_offset:020d}.log"
