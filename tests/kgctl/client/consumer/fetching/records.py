"""Batches and rows of answers for tests."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from broker.protocol.compression import Codec
from broker.protocol.messages.fetch import FetchResponse
from broker.protocol.record_batch import Record, build_batch

ABORT, COMMIT = struct.pack(">hh", 0, 0), struct.pack(">hh", 0, 1)


def batch(
    first: int,
    count: int,
    *,
    codec: Codec = Codec.NONE,
    producer_id: int | None = None,
    epoch: int = -1,
    last: int | None = None,
) -> bytes:
    """Records with their offset as value; of a transaction where a producer is given."""
    records = [Record(first + n, 1000 + n, b"key", str(first + n).encode(), ()) for n in range(count)]
    is_transactional = producer_id is not None
    return build_batch(
        records,
        codec=codec,
        base_offset=first,
        last_offset=first + count - 1 if last is None else last,
        leader_epoch=epoch,
        producer_id=producer_id if producer_id is not None else -1,
        producer_epoch=0 if is_transactional else -1,
        base_sequence=0 if is_transactional else -1,
        is_transactional=is_transactional,
    )


def marker(offset: int, producer_id: int, kind: bytes) -> bytes:
    record = Record(offset, 0, kind, struct.pack(">hi", 0, 0), ())
    return build_batch([record], producer_id=producer_id, producer_epoch=0, is_transactional=True, is_control=True)


def row(
    raw: bytes = b"",
    *,
    partition: int = 0,
    error: int = 0,
    aborted: Sequence[tuple[int, int]] = (),
    end: int = 100,
    stable: int | None = None,
    start: int = 0,
    preferred: int = -1,
) -> FetchResponse.Partition:
    """One partition of an answer; `aborted` has producer ids and first offsets."""
    return FetchResponse.Partition(
        partition_index=partition,
        error_code=error,
        high_watermark=end,
        last_stable_offset=end if stable is None else stable,
        log_start_offset=start,
        aborted_transactions=[
            FetchResponse.AbortedTransaction(producer_id=producer, first_offset=offset) for producer, offset in aborted
        ],
        preferred_read_replica=preferred,
        records=memoryview(raw),
    )
