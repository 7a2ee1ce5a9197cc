"""Encodes records one by one, and the batch (format v2) that holds them."""

from __future__ import annotations

import struct

import google_crc32c

from broker.protocol.compression import Codec, compress
from broker.protocol.varints import varint

BATCH_OVERHEAD_BYTES = 61
_HEADER = struct.Struct(">qiibI")
_CHECKED = struct.Struct(">hiqqqhii")
# Of the length: base offset and length itself.
_NOT_COUNTED_BYTES = 12
_TRANSACTIONAL = 0x10
_MAX_CACHED = 65_536


class _Varints(dict[int, bytes]):
    """Encoded varints; those of everyday lengths are computed once."""

    def __missing__(self, number: int) -> bytes:
        encoded = varint(number)
        if -_MAX_CACHED < number < _MAX_CACHED:
            self[number] = encoded
        return encoded


VARINTS = _Varints()


def headers_bytes(headers: tuple[tuple[str, bytes | None], ...]) -> bytes:
    """The end of a record that has headers."""
    parts = [varint(len(headers))]
    for name, content in headers:
        encoded = name.encode()
        parts += varint(len(encoded)), encoded
        parts += (b"\x01",) if content is None else (varint(len(content)), content)
    return b"".join(parts)


def encode_batch(
    body: bytes,
    count: int,
    base_timestamp: int,
    max_timestamp: int,
    *,
    codec: Codec = Codec.NONE,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    is_transactional: bool = False,
) -> bytes:
    """A batch of `count` encoded records whose offsets begin at 0. `body` is compressed already, with this codec."""
    attributes = int(codec) | (_TRANSACTIONAL if is_transactional else 0)
    fields = (count - 1, base_timestamp, max_timestamp, producer_id, producer_epoch, base_sequence, count)
    head = _CHECKED.pack(attributes, *fields)
    crc = google_crc32c.extend(google_crc32c.value(head), body)
    length = BATCH_OVERHEAD_BYTES - _NOT_COUNTED_BYTES + len(body)
    return b"".join((_HEADER.pack(0, length, -1, 2, crc), head, body))


def compressed(parts: list[bytes], codec: Codec, level: int | None = None) -> bytes:
    """The records of a batch, joined and compressed. gzip and zstd have levels."""
    plain = b"".join(parts)
    return plain if codec is Codec.NONE else compress(codec, plain, level)
