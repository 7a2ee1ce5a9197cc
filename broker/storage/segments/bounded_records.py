"""Decoding of records with bounds: a few hundred compressed bytes may hold millions of records.

A batch beyond the bounds counts as one that cannot be decoded: it is stored and served as it is.
"""

from __future__ import annotations

from collections.abc import Iterator

from broker.protocol.record_batch import Buffer, Record, decode_records, scan_records

MAX_RECORDS = 100_000
MAX_PLAIN_BYTES = 16 << 20


def decoded(batch: Buffer) -> list[Record]:
    """The records of one batch; DecodeError if it is malformed or beyond the bounds."""
    return decode_records(batch, max_decompressed_bytes=MAX_PLAIN_BYTES, max_records=MAX_RECORDS)


def scanned(batch: Buffer) -> Iterator[tuple[int, int, bool]]:
    """(offset, timestamp, has a key) of the records of one batch; DecodeError if it is malformed or beyond the bounds."""
    return scan_records(batch, max_decompressed_bytes=MAX_PLAIN_BYTES, max_records=MAX_RECORDS)
