"""Decodes record batches from the wire into columns, without an object per record."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from broker.protocol.compression import decompress
from broker.protocol.record_batch import DEFAULT_MAX_DECOMPRESSED_BYTES, BatchHeader
from broker.protocol.varints import read_varint
from broker.protocol.wire_types import DecodeError
from kgctl.client.consumer.fetched import Fetched
from kgctl.pipelines.source.header_columns import HEADERS_TYPE, headers_column

# The columns of schemas.RAW_DDL as Arrow types; Spark compares them exactly.
RAW_SCHEMA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("timestampType", pa.int32()),
    ]
)
RAW_SCHEMA_WITH_HEADERS = RAW_SCHEMA.append(pa.field("headers", HEADERS_TYPE))

# Size of an Arrow batch: large enough that Spark's overhead per batch does not matter, small enough for a worker's memory.
CHUNK_BYTES = 8 << 20
# A varint is read up to ten bytes long, even at the last byte.
_PADDING = bytes(16)
_MAX_TIMESTAMP_MS = (2**63 - 1) // 1000


@dataclass(frozen=True, slots=True)
class _Plain:
    """A batch to decode, decompressed; `position` is its position in the response."""

    position: int
    header: BatchHeader
    records: bytes


def record_batches(fetched: Fetched, *, headers: bool = False) -> Iterator[pa.RecordBatch]:
    """The requested records of a response in the columns of RAW_SCHEMA. Raises Damaged if the bytes cannot be decoded.

    Control batches and, where `fetched.aborted` says which, records of aborted transactions are left out.
    """
    chunk: list[_Plain] = []
    size = 0
    for plain in _wanted(fetched):
        chunk.append(plain)
        size += len(plain.records)
        if size >= CHUNK_BYTES:
            yield from _columns(fetched, chunk, headers)
            chunk, size = [], 0
    yield from _columns(fetched, chunk, headers)


def _wanted(fetched: Fetched) -> Iterator[_Plain]:
    for position, header, is_wanted, packed in fetched.checked_payloads():
        if not is_wanted or not header.record_count:
            continue
        try:
            records = decompress(header.codec, packed, DEFAULT_MAX_DECOMPRESSED_BYTES)
        except DecodeError as error:
            raise fetched.damaged(header, str(error)) from error
        yield _Plain(position, header, records)


def _columns(fetched: Fetched, chunk: Sequence[_Plain], headers: bool) -> Iterator[pa.RecordBatch]:
    if not chunk:
        return
    plain = b"".join([one.records for one in chunk] + [_PADDING])
    try:
        ends = _record_ends(plain, chunk)
        made = _Chunk(fetched, chunk, plain, np.frombuffer(ends, np.int64), headers).columns()
    except (DecodeError, IndexError) as error:
        for one in chunk:
            fetched.decode(one.position, one.header)
        raise fetched.damaged(chunk[0].header, str(error)) from error
    if made.num_rows:
        yield made


def _record_ends(plain: bytes, chunk: Sequence[_Plain]) -> array[int]:
    """Where each record ends: the only step that must go from record to record."""
    ends = array("q")
    add = ends.append
    position = 0
    for one in chunk:
        end = position + len(one.records)
        for _ in range(one.header.record_count):
            length = plain[position]
            position += 1
            if length > 127:
                byte = plain[position]
                position += 1
                length += (byte << 7) - 128
                if byte > 127:
                    half, position = read_varint(plain, position - 2)
                    length = half << 1
            position += length >> 1
            add(position)
        if position != end:
            raise DecodeError("the records do not fill their batch")
    return ends


class _Chunk:
    """Decodes all records of several batches at once: every step works on whole arrays."""

    def __init__(
        self, fetched: Fetched, chunk: Sequence[_Plain], plain: bytes, ends: np.ndarray, headers: bool
    ) -> None:
        self._fetched, self._plain, self._ends, self._headers = fetched, plain, ends, headers
        self._bytes = np.frombuffer(plain, np.uint8)
        self._counts = [one.header.record_count for one in chunk]
        self._batches = [one.header for one in chunk]

    def columns(self) -> pa.RecordBatch:
        length, start = self._varints(np.concatenate((np.zeros(1, np.int64), self._ends[:-1])))
        delta_ms, at = self._varints(start + 1)
        delta, at = self._varints(at)
        key_length, key_start = self._varints(at)
        key_end = key_start + np.maximum(key_length, 0)
        _check((key_length >= -1) & (key_length <= self._ends - key_start), "a key does not fit into its record")
        value_length, value_start = self._varints(key_end)
        value_end = value_start + np.maximum(value_length, 0)
        _check((value_length >= -1) & (value_length < self._ends - value_start), "a value does not fit into its record")
        header_count, at = self._varints(value_end)
        _check(start + length == self._ends, "a record has a wrong length")
        _check((header_count > 0) | ((header_count == 0) & (at == self._ends)), "a record has a wrong length")

        offset = self._per_record([one.base_offset for one in self._batches]) + delta
        wanted = self._wanted(offset)
        bounds: np.ndarray = np.empty(4 * len(offset), np.int32)
        bounds[0::4], bounds[1::4], bounds[2::4], bounds[3::4] = key_start, key_end, value_start, value_end
        slots = pa.Array.from_buffers(
            pa.binary(), len(bounds) - 1, [None, pa.py_buffer(bounds), pa.py_buffer(self._plain)]
        )
        count = len(wanted)
        columns = [
            slots.take(pa.array(4 * wanted, mask=key_length[wanted] < 0)),
            slots.take(pa.array(4 * wanted + 2, mask=value_length[wanted] < 0)),
            pa.repeat(pa.scalar(self._fetched.partition.topic, pa.string()), count),
            pa.array(np.full(count, self._fetched.partition.partition, np.int32)),
            pa.array(offset[wanted]),
            pa.array(self._timestamps(delta_ms)[wanted]).view(RAW_SCHEMA.field("timestamp").type),
            pa.array(self._per_record([int(one.has_log_append_time) for one in self._batches], np.int32)[wanted]),
        ]
        if not self._headers:
            return pa.RecordBatch.from_arrays(columns, schema=RAW_SCHEMA)
        columns.append(headers_column(self._plain, header_count[wanted], at[wanted], self._ends[wanted]))
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

    def _varints(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The signed varint at each position, and the positions after them."""
        first = self._bytes.take(at)
        folded = first.astype(np.uint64)
        after: np.ndarray = at + 1
        more = np.flatnonzero(first > 127)
        folded[more] &= np.uint64(127)
        shift = 7
        while len(more):
            if shift > 63:
                raise DecodeError("a varint is longer than ten bytes")
            byte = self._bytes.take(after[more])
            folded[more] |= (byte & 127).astype(np.uint64) << np.uint64(shift)
            after[more] += 1
            more = more[byte > 127]
            shift += 7
        return ((folded >> np.uint64(1)) ^ -(folded & np.uint64(1))).view(np.int64), after


def _check(right: np.ndarray, otherwise: str) -> None:
    if not right.all():
        raise DecodeError(otherwise)
