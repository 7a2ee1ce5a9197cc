"""Decodes record batches from the wire into columns, without an object per record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from broker.protocol.compression import Codec, decompress
from broker.protocol.record_batch import DEFAULT_MAX_DECOMPRESSED_BYTES, HEADER_BYTES, BatchHeader
from broker.protocol.wire_types import DecodeError
from kgctl.client.consumer.fetched import Fetched
from kgctl.pipelines.source.header_columns import HEADERS_TYPE, headers_column
from kgctl.pipelines.source.record_ends import Span, record_ends
from kgctl.pipelines.source.varint_columns import varints

# The columns of schemas.RAW_DDL as Arrow types; Spark compares them exactly.
RAW_SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("timestampType", pa.int32(), nullable=False),
    ]
)
RAW_SCHEMA_WITH_HEADERS = RAW_SCHEMA.append(pa.field("headers", HEADERS_TYPE))

# Size of an Arrow batch: large enough that Spark's overhead per batch does not matter, small enough for a worker's memory.
CHUNK_BYTES = 8 << 20
_MAX_TIMESTAMP_MS = (2**63 - 1) // 1000


_SMALLEST_RECORD_BYTES = 7


@dataclass(frozen=True, slots=True)
class _Batch:
    """A batch to decode. `position` is its position in the response; `plain`, its records, is None if not compressed."""

    position: int
    header: BatchHeader
    plain: bytes | None

    @property
    def size(self) -> int:
        return self.header.size_bytes - HEADER_BYTES if self.plain is None else len(self.plain)

    def span(self, start: int) -> Span:
        return Span(start, start + self.size, self.header.record_count)


def record_batches(fetched: Fetched, *, headers: bool = False) -> Iterator[pa.RecordBatch]:
    """The requested records of a response in the columns of RAW_SCHEMA. Raises Damaged if the bytes cannot be decoded.

    Control batches and, where `fetched.aborted` says which, records of aborted transactions are left out.
    """
    chunk: list[_Batch] = []
    size = 0
    for batch in _wanted(fetched):
        chunk.append(batch)
        size += batch.size
        if size >= CHUNK_BYTES:
            yield from _columns(fetched, chunk, headers)
            chunk, size = [], 0
    yield from _columns(fetched, chunk, headers)


def _wanted(fetched: Fetched) -> Iterator[_Batch]:
    for position, header, is_wanted, packed in fetched.checked_payloads():
        if not is_wanted or not header.record_count:
            continue
        plain = None
        if header.codec != Codec.NONE:
            try:
                plain = decompress(header.codec, packed, DEFAULT_MAX_DECOMPRESSED_BYTES)
            except DecodeError as error:
                raise fetched.damaged(header, str(error)) from error
        batch = _Batch(position, header, plain)
        if not 0 <= header.record_count <= batch.size // _SMALLEST_RECORD_BYTES:
            raise fetched.damaged(header, "a record batch has more records than bytes")
        yield batch


def _columns(fetched: Fetched, chunk: Sequence[_Batch], headers: bool) -> Iterator[pa.RecordBatch]:
    if not chunk:
        return
    data, spans = _spans(fetched, chunk)
    try:
        made = _Chunk(fetched, chunk, data, spans, headers).columns()
    except (DecodeError, IndexError) as error:
        for one in chunk:
            fetched.decode(one.position, one.header)
        raise fetched.damaged(chunk[0].header, str(error)) from error
    if made.num_rows:
        yield made


def _spans(fetched: Fetched, chunk: Sequence[_Batch]) -> tuple[bytes | memoryview, list[Span]]:
    """The response itself if no batch is compressed: copying it would take as long as decoding a column."""
    if all(one.plain is None for one in chunk):
        return fetched.raw, [one.span(one.position + HEADER_BYTES) for one in chunk]
    parts: list[bytes | memoryview] = []
    spans: list[Span] = []
    for one in chunk:
        spans.append(one.span(spans[-1].stop if spans else 0))
        begin = one.position + HEADER_BYTES
        parts.append(fetched.raw[begin : begin + one.size] if one.plain is None else one.plain)
    return b"".join(parts), spans


class _Chunk:
    """Decodes all records of several batches at once: every step works on whole arrays."""

    def __init__(
        self,
        fetched: Fetched,
        chunk: Sequence[_Batch],
        data: bytes | memoryview,
        spans: Sequence[Span],
        headers: bool,
    ) -> None:
        self._fetched, self._data, self._headers = fetched, data, headers
        self._bytes = np.frombuffer(data, np.uint8)
        self._counts = np.array([one.records for one in spans])
        self._batches = [one.header for one in chunk]
        self._ends = record_ends(data, spans)
        self._starts = np.empty_like(self._ends)
        self._starts[1:] = self._ends[:-1]
        self._starts[np.cumsum(self._counts) - self._counts] = [one.start for one in spans]

    def columns(self) -> pa.RecordBatch:
        data, ends = self._bytes, self._ends
        length, start = varints(data, self._starts)
        delta_ms, at = varints(data, start + 1)
        delta, at = varints(data, at)
        key_length, key_start = varints(data, at)
        key_end = key_start + np.maximum(key_length, 0)
        _check((key_length >= -1) & (key_length <= ends - key_start), "a key does not fit into its record")
        value_length, value_start = varints(data, key_end)
        value_end = value_start + np.maximum(value_length, 0)
        _check((value_length >= -1) & (value_length < ends - value_start), "a value does not fit into its record")
        header_count, at = varints(data, value_end)
        _check(start + length == ends, "a record has a wrong length")
        _check((header_count > 0) | ((header_count == 0) & (at == ends)), "a record has a wrong length")

        offset = self._per_record([one.base_offset for one in self._batches]) + delta
        wanted = self._wanted(offset)
        bounds: np.ndarray = np.empty(4 * len(offset), np.int32)
        bounds[0::4], bounds[1::4], bounds[2::4], bounds[3::4] = key_start, key_end, value_start, value_end
        slots = pa.Array.from_buffers(
            pa.binary(), len(bounds) - 1, [None, pa.py_buffer(bounds), pa.py_buffer(self._data)]
        )
        count = len(wanted)
        columns = [
            slots.take(pa.array(4 * wanted, mask=_nulls(key_length[wanted]))),
            slots.take(pa.array(4 * wanted + 2, mask=_nulls(value_length[wanted]))),
            pa.repeat(pa.scalar(self._fetched.partition.topic, pa.string()), count),
            pa.array(np.full(count, self._fetched.partition.partition, np.int32)),
            pa.array(offset[wanted]),
            pa.array(self._timestamps(delta_ms)[wanted]).view(RAW_SCHEMA.field("timestamp").type),
            pa.array(self._per_record([int(one.has_log_append_time) for one in self._batches], np.int32)[wanted]),
        ]
        if not self._headers:
            return pa.RecordBatch.from_arrays(columns, schema=RAW_SCHEMA)
        columns.append(headers_column(self._data, header_count[wanted], at[wanted], ends[wanted]))
        return pa.RecordBatch.from_arrays(columns, schema=RAW_SCHEMA_WITH_HEADERS)

    def _wanted(self, offset: np.ndarray) -> np.ndarray:
        """The indexes of the records from the requested offset up to the limit."""
        wanted = offset >= self._fetched.offset
        if self._fetched.limit is not None:
            wanted &= offset < self._fetched.limit
        return np.flatnonzero(wanted)

    def _timestamps(self, delta_ms: np.ndarray) -> np.ndarray:
        """In microseconds; for batches with log append time, that time."""
        of_log = self._per_record([one.has_log_append_time for one in self._batches], np.bool_)
        base = self._per_record(
            [one.max_timestamp if one.has_log_append_time else one.base_timestamp for one in self._batches]
        )
        # Spark's timestamps end in the year 294247. A producer with a wrong unit must not stop the whole read.
        return np.clip(base + np.where(of_log, 0, delta_ms), -_MAX_TIMESTAMP_MS, _MAX_TIMESTAMP_MS) * 1000

    def _per_record(self, values: Sequence[int], kind: type[np.generic] = np.int64) -> np.ndarray:
        return np.repeat(np.array(values, kind), self._counts)


def _nulls(lengths: np.ndarray) -> np.ndarray | None:
    nulls = lengths < 0
    return nulls if nulls.any() else None


def _check(right: np.ndarray, otherwise: str) -> None:
    if not right.all():
        raise DecodeError(otherwise)
