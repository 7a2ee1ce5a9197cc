"""The trailer of a sealed segment file: which segment it is and what it holds, so that no other file passes for it."""

from __future__ import annotations

import struct

import google_crc32c

from broker.light_named_tuples import NamedTuple

_crc = google_crc32c.value
_crc_extend = google_crc32c.extend
# At the place of a base offset, larger than any: no scan takes a trailer for a batch.
_MAGIC = b"kgctlend"
_ID = struct.Struct(">16sIqI")
_BATCH = struct.Struct(">qiI")
_TRAILER = struct.Struct(">8s16sIqIqqqI")
TRAILER_BYTES = _TRAILER.size
UNKNOWN_DIGEST = -1


class Trailer(NamedTuple):
    topic_id: bytes
    partition: int
    base_offset: int
    revision: int
    size_bytes: int  # of the batches; the trailer follows them
    end_offset: int
    digest: int  # of the batches, see `chained`; UNKNOWN_DIGEST if an older format began the segment

    def pack(self) -> bytes:
        body = _TRAILER.pack(_MAGIC, *self, 0)[:-4]
        return body + struct.pack(">I", _crc(body))

    def spell(self) -> str:
        return (
            f"those of topic id {self.topic_id.hex()}, partition {self.partition},"
            f" offsets {self.base_offset} to {self.end_offset - 1}, revision {self.revision}"
        )


def parse_trailer(content: bytes) -> Trailer | None:
    """None if this is no undamaged trailer."""
    if len(content) != TRAILER_BYTES:
        return None
    magic, *fields, crc = _TRAILER.unpack(content)
    return Trailer(*fields) if magic == _MAGIC and crc == _crc(content[:-4]) else None


def segment_id_crc(topic_id: bytes, partition: int, base_offset: int, revision: int) -> int:
    """A checksum that starts those of the index file: the chunks of another segment do not fit."""
    value: int = _crc(_ID.pack(topic_id, partition, base_offset, revision))
    return value


def chained(digest: int, base_offset: int, batch_length: int, crc: int) -> int:
    """The digest of a segment and one more batch. It covers order, place and content of all batches."""
    value: int = _crc_extend(digest, _BATCH.pack(base_offset, batch_length, crc))
    return value
