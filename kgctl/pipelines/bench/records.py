"""Generates a file of commit records in Kafka's own format, the same for every engine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet

from broker.protocol.offsets_topic import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    encode_key,
    encode_value,
)
from kgctl.pipelines.bench.children import end_with_parent

GROUPS, TOPICS, PARTITIONS = 100, 4, 30
TOMBSTONES, GROUP_RECORDS = 0.005, 0.001
ROWS_PER_CHUNK = 1_000_000
START_MS = 1_700_000_000_000
# All commits lie within one day, whatever their number.
SPAN_MS = 86_400_000
# Version 3: version, offset, leader epoch, length of the empty metadata, commit timestamp.
_VALUE = np.dtype([("version", ">i2"), ("offset", ">i8"), ("epoch", ">i4"), ("metadata", ">i2"), ("ts", ">i8")])


def write_records(path: Path, count: int, seed: int = 1) -> None:
    """Parquet with key, value and offset: commits of 12,000 partitions, 0.5% tombstones, 0.1% group records."""
    randomness = np.random.default_rng(seed)
    keys = pa.array(_keys() + _group_keys(), pa.binary())
    commits, everything = GROUPS * TOPICS * PARTITIONS, len(keys)
    group_value = encode_value(GroupMetadataValue(protocol_type="consumer", generation=1, protocol="range", leader="m"))
    schema = pa.schema([("key", pa.binary()), ("value", pa.binary()), ("offset", pa.int64())])
    with parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        for begin in range(0, count, ROWS_PER_CHUNK):
            size = min(ROWS_PER_CHUNK, count - begin)
            about_group = randomness.random(size) < GROUP_RECORDS
            which = np.where(
                about_group, randomness.integers(commits, everything, size), randomness.integers(0, commits, size)
            )
            values: Any = np.zeros(size, _VALUE)
            position: Any = np.arange(begin, begin + size, dtype=np.int64)
            values["version"], values["offset"], values["epoch"] = 3, position * 7 + which, 5
            values["ts"] = START_MS + position * SPAN_MS // count
            offsets: Any = np.arange(0, (size + 1) * _VALUE.itemsize, _VALUE.itemsize, dtype=np.int32)
            column = pa.Array.from_buffers(
                pa.binary(), size, [None, pa.py_buffer(offsets), pa.py_buffer(values.tobytes())]
            )
            column = pa.compute.if_else(pa.array(about_group), pa.scalar(group_value, pa.binary()), column)
            column = pa.compute.if_else(
                pa.array(randomness.random(size) < TOMBSTONES), pa.scalar(None, pa.binary()), column
            )
            writer.write_batch(
                pa.RecordBatch.from_arrays([keys.take(pa.array(which)), column, pa.array(position)], schema=schema)
            )


def _keys() -> list[bytes]:
    return [
        encode_key(OffsetCommitKey(f"group-{group:03}", f"topic-{topic}", partition))
        for group in range(GROUPS)
        for topic in range(TOPICS)
        for partition in range(PARTITIONS)
    ]


def _group_keys() -> list[bytes]:
    return [encode_key(GroupMetadataKey(f"group-{group:03}")) for group in range(GROUPS)]


if __name__ == "__main__":
    end_with_parent()
    write_records(Path(sys.argv[1]), int(sys.argv[2]))
