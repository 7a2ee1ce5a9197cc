"""Which times the buckets of DescribeBroker stand for: below 8 us one each, then four for each power of two."""

from __future__ import annotations

BUCKETS = 128


def limits(bucket: int) -> tuple[int, int]:
    """The times in the bucket, in microseconds: from the first, and below the second."""
    if bucket < 16:
        return bucket, bucket + 1
    bits, quarter = bucket >> 2, bucket & 3
    width = 1 << bits - 3
    first = (1 << bits - 1) + quarter * width
    return first, first + width
