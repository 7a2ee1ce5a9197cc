"""Record headers as one column: names as text, values as bytes; null for a record without headers, as in Spark."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from broker.protocol.varints import read_varint
from broker.protocol.wire_types import DecodeError

_HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])
HEADERS_TYPE = pa.list_(pa.field("element", _HEADER))


def headers_column(plain: bytes | memoryview, counts: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> pa.Array:
    """The column for records with `counts` headers between `starts` and `ends`. Raises DecodeError.

    Bytes of a name that are not UTF-8 are replaced, as in Kafka's own clients.
    """
    names: list[str] = []
    values: list[bytes | None] = []
    for count, position, end in zip(counts.tolist(), starts.tolist(), ends.tolist(), strict=True):
        for _ in range(count):
            name, position = _part(plain, position, end)
            if name is None:
                raise DecodeError("a header has no name")
            value, position = _part(plain, position, end)
            names.append(name.decode("utf-8", "replace"))
            values.append(value)
        if position != end:
            raise DecodeError("a record has a wrong length")
    flat = pa.StructArray.from_arrays(
        [pa.array(names, pa.string()), pa.array(values, pa.binary())], fields=list(_HEADER)
    )
    offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts))).astype(np.int32)
    validity = np.packbits(counts > 0, bitorder="little")
    buffers = [pa.py_buffer(validity), pa.py_buffer(offsets)]
    return pa.Array.from_buffers(HEADERS_TYPE, len(counts), buffers, children=[flat])


def _part(plain: bytes | memoryview, position: int, limit: int) -> tuple[bytes | None, int]:
    length, position = read_varint(plain, position)
    if length < 0:
        return None, position
    end = position + length
    if end > limit:
        raise DecodeError("a header is longer than its record")
    return bytes(plain[position:end]), end
