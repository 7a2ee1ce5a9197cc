"""Decodes record batches from the wire into columns, without an object per record, and only those that are wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from broker.protocol.compression import Codec, decompress
from broker.protocol.record_batch import HEADER_BYTES, BatchHeader
from broker.protocol.wire_types import DecodeError
from kgctl.client.consumer.fetched import MOST_PLAIN_BYTES, Fetched
from kgctl.pipelines.schemas.sources import HEADERS, RAW_NAMES
from kgctl.pipelines.source.header_columns import HEADERS_TYPE, headers_column
from kgctl.pipelines.source.record_ends import Span, record_ends
from kgctl.pipelines.source.varint_columns import varints

# The columns of schemas.sources as Arrow types; Spark compares them exactly.
RAW_SCHEMA_WITH_HEADERS = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        pa.field("topic", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("timestampType", pa.int32(), nullable=False),
        pa.field(HEADERS, HEADERS_TYPE),
    ]
)
# These stand in the records. For the others the header of a batch says enough, unless compaction left gaps in it.
_IN_RECORDS = frozenset({"key", "value", "timestamp", HEADERS})

# Size of an Arrow batch: large enough that Spark's overhead per batch does not matter, small enough for a worker's memory.
CHUNK_BYTES = 8 << 20
_MAX_TIMESTAMP_MS = (2**63 - 1) // 1000
_SMALLEST_RECORD_BYTES = 7


def schema_of(columns: Iterable[str]) -> pa.Schema:
    """The Arrow schema of some of schemas.sources.RAW_NAMES and `headers`, in this order. Raises KeyError."""
    return pa.schema([RAW_SCHEMA_WITH_HEADERS.field(name) for name in columns])


def record_batches(fetched: Fetched, columns: Sequence[str] = RAW_NAMES) -> Iterator[pa.RecordBatch]:
    """The requested records of a response in these columns. Raises Damaged if the bytes that hold them cannot be decoded.

    Control batches and, where `fetched.aborted` says which, records of aborted transactions are left out.
    """
    schema = schema_of(columns)
    for chunk in _chunks(_wanted(fetched, needs_records=not _IN_RECORDS.isdisjoint(columns))):
        made = (_decoded if chunk[0].needs_records else _counted)(fetched, chunk, schema)
        if made.num_rows:
            yield made


@dataclass(frozen=True, slots=True)
class _Batch:
    """A batch to decode. `position` is its position in the response; `plain`, its records, is None if not compressed."""

    position: int
    header: BatchHeader
    plain: bytes | None
    needs_records: bool = True

    @property
    def size(self) -> int:
        return self.header.size_bytes - HEADER_BYTES if self.plain is None else len(self.plain)

    def span(self, start: int) -> Span:
        return Span(start, start + self.size, self.header.record_count)


def _wanted(fetched: Fetched, *, needs_records: bool) -> Iterator[_Batch]:
    for position, header, is_wanted, packed in fetched.checked_payloads():
        if not is_wanted or not header.record_count:
            continue
        has_gaps = header.last_offset_delta + 1 != header.record_count
        is_packed = header.codec != Codec.NONE
        plain = None
        if is_packed and (needs_records or has_gaps):
            try:
                plain = decompress(header.codec, packed, MOST_PLAIN_BYTES)
            except DecodeError as error:
                raise fetched.damaged(header, str(error)) from error
        batch = _Batch(position, header, plain, needs_records or has_gaps)
        most = MOST_PLAIN_BYTES if is_packed and plain is None else batch.size
        if not 0 <= header.record_count <= most // _SMALLEST_RECORD_BYTES:
            raise fetched.damaged(header, "a record batch has more records than bytes")
        yield batch


def _chunks(batches: Iterable[_Batch]) -> Iterator[list[_Batch]]:
    """Batches that become one Arrow batch: records of all of them must be decoded, or of none."""
    chunk: list[_Batch] = []
    size = 0
    for batch in batches:
        if chunk and (size >= CHUNK_BYTES or batch.needs_records != chunk[0].needs_records):
            yield chunk
            chunk, size = [], 0
        chunk.append(batch)
        size += batch.size
    if chunk:
        yield chunk


def _counted(fetched: Fetched, chunk: Sequence[_Batch], schema: pa.Schema) -> pa.RecordBatch:
    return _Counted(fetched, chunk).record_batch(schema)


def _decoded(fetched: Fetched, chunk: Sequence[_Batch], schema: pa.Schema) -> pa.RecordBatch:
    data, spans = _spans(fetched, chunk)
    try:
        return _Decoded(fetched, chunk, data, spans, schema).record_batch(schema)
    except (DecodeError, IndexError) as error:
        for one in chunk:
            fetched.decode(one.position, one.header)
        raise fetched.damaged(chunk[0].header, str(error)) from error


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


class _Counted:
    """What the headers of batches say about their records, if the offsets of a batch have no gaps."""

    def __init__(self, fetched: Fetched, chunk: Sequence[_Batch]) -> None:
        self._fetched = fetched
        self._batches = [one.header for one in chunk]
        self._counts = np.array([one.record_count for one in self._batches])
        offset = self._per_record([one.base_offset for one in self._batches]) + self._deltas()
        wanted = offset >= fetched.offset
        if fetched.limit is not None:
            wanted &= offset < fetched.limit
        self._offset, self._wanted = offset, np.flatnonzero(wanted)

    def record_batch(self, schema: pa.Schema) -> pa.RecordBatch:
        columns = self._columns()
        return pa.RecordBatch.from_arrays([columns[name]() for name in schema.names], schema=schema)

    def _columns(self) -> dict[str, Callable[[], pa.Array]]:
        topic, partition = self._fetched.partition
        return {
            "topic": lambda: pa.repeat(pa.scalar(topic, pa.string()), len(self._wanted)),
            "partition": lambda: pa.array(np.full(len(self._wanted), partition, np.int32)),
            "offset": lambda: pa.array(self._offset[self._wanted]),
            "timestampType": lambda: pa.array(self._timestamp_types()[self._wanted]),
        }

    def _deltas(self) -> np.ndarray:
        """How far each record is behind the first offset of its batch."""
        return np.arange(self._counts.sum()) - np.repeat(np.cumsum(self._counts) - self._counts, self._counts)

    def _timestamp_types(self) -> np.ndarray:
        return self._per_record([int(one.has_log_append_time) for one in self._batches], np.int32)

    def _per_record(self, values: Sequence[int], kind: type[np.generic] = np.int64) -> np.ndarray:
        return np.repeat(np.array(values, kind), self._counts)


class _Decoded(_Counted):
    """Decodes all records of several batches at once: every step works on whole arrays."""

    def __init__(
        self,
        fetched: Fetched,
        chunk: Sequence[_Batch],
        data: bytes | memoryview,
        spans: Sequence[Span],
        schema: pa.Schema,
    ) -> None:
        self._data, self._bytes = data, np.frombuffer(data, np.uint8)
        counts = np.array([one.records for one in spans])
        self._ends = record_ends(data, spans)
        starts = np.empty_like(self._ends)
        starts[1:] = self._ends[:-1]
        starts[np.cumsum(counts) - counts] = [one.start for one in spans]
        length, self._start = varints(self._bytes, starts)
        _check(self._start + length == self._ends, "a record has a wrong length")
        self._delta_ms, at = varints(self._bytes, self._start + 1)
        self._delta, self._key_at = varints(self._bytes, at)
        super().__init__(fetched, chunk)
        if not {"key", "value", HEADERS}.isdisjoint(schema.names):
            self._find_content()

    def _columns(self) -> dict[str, Callable[[], pa.Array]]:
        return super()._columns() | {
            "key": lambda: self._content(0, self._key_length),
            "value": lambda: self._content(2, self._value_length),
            "timestamp": lambda: pa.array(self._timestamps()[self._wanted]).view(
                RAW_SCHEMA_WITH_HEADERS.field("timestamp").type
            ),
            HEADERS: self._headers,
        }

    def _deltas(self) -> np.ndarray:
        return self._delta

    def _find_content(self) -> None:
        """Where key, value and headers of each record lie."""
        ends = self._ends
        self._key_length, key_start = varints(self._bytes, self._key_at)
        key_end = key_start + np.maximum(self._key_length, 0)
        fits = (self._key_length >= -1) & (self._key_length <= ends - key_start)
        _check(fits, "a key does not fit into its record")
        self._value_length, value_start = varints(self._bytes, key_end)
        value_end = value_start + np.maximum(self._value_length, 0)
        fits = (self._value_length >= -1) & (self._value_length < ends - value_start)
        _check(fits, "a value does not fit into its record")
        self._header_count, self._header_at = varints(self._bytes, value_end)
        is_full = (self._header_count > 0) | ((self._header_count == 0) & (self._header_at == ends))
        _check(is_full, "a record has a wrong length")
        bounds: np.ndarray = np.empty(4 * len(ends), np.int32)
        bounds[0::4], bounds[1::4], bounds[2::4], bounds[3::4] = key_start, key_end, value_start, value_end
        # Every fourth slot is a key, and the second after it a value.
        self._slots = pa.Array.from_buffers(
            pa.binary(), len(bounds) - 1, [None, pa.py_buffer(bounds), pa.py_buffer(self._data)]
        )

    def _content(self, slot: int, lengths: np.ndarray) -> pa.Array:
        return self._slots.take(pa.array(4 * self._wanted + slot, mask=_nulls(lengths[self._wanted])))

    def _headers(self) -> pa.Array:
        some = self._wanted
        return headers_column(self._data, self._header_count[some], self._header_at[some], self._ends[some])

    def _timestamps(self) -> np.ndarray:
        """In microseconds; for batches with log append time, that time."""
        of_log = self._per_record([one.has_log_append_time for one in self._batches], np.bool_)
        base = self._per_record(
            [one.max_timestamp if one.has_log_append_time else one.base_timestamp for one in self._batches]
        )
        # Spark's timestamps end in the year 294247. A producer with a wrong unit must not stop the whole read.
        times = np.clip(base + np.where(of_log, 0, self._delta_ms), -_MAX_TIMESTAMP_MS, _MAX_TIMESTAMP_MS)
        return times * 1000


def _nulls(lengths: np.ndarray) -> np.ndarray | None:
    nulls = lengths < 0
    return nulls if nulls.any() else None


def _check(right: np.ndarray, otherwise: str) -> None:
    if not right.all():
        raise DecodeError(otherwise)
