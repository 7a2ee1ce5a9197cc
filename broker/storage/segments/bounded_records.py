"""The records of stored and produced batches, as far as the broker looks into them: never more than it can afford.

A few hundred compressed bytes may hold millions of records. What lies beyond the bounds counts as a batch that
nobody can decode: it is stored and served as it is.
"""

from __future__ import annotations

from collections.abc import Iterator

from broker.protocol.record_batch import Buffer, Record, decode_records, scan_records

MAX_RECORDS = 100_000
MAX_PLAIN_BYTES = 16 << 20


def decoded(batch: Buffer) -> list[Record]:
    """The records of one batch; DecodeError also beyond the bounds."""
    return decode_records(batch, max_decompressed_bytes=MAX_PLAIN_BYTES, max_records=MAX_RECORDS)


def scanned(batch: Buffer) -> Iterator[tuple[int, int, bool]]:
    """(offset, timestamp, has a key) of the records of one batch; DecodeError also beyond the bounds."""
    return scan_records(batch, max_decompressed_bytes=MAX_PLAIN_BYTES, max_records=MAX_RECORDS)
