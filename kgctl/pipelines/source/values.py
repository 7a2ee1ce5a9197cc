"""Turns rows of a DataFrame into records for a producer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from kgctl.client.net.errors import BadValue
from kgctl.client.producer.records import OutgoingRecord

COLUMNS = ("key", "value", "topic", "partition", "headers")


@dataclass(frozen=True, slots=True)
class Columns:
    """The positions of the columns that the DataFrame has."""

    positions: Mapping[str, int]

    def of(self, batch: pa.RecordBatch, name: str) -> Sequence[object]:
        position = self.positions.get(name)
        return [None] * batch.num_rows if position is None else batch.column(position).to_pylist()

    def bytes_of(self, batch: pa.RecordBatch, name: str) -> Sequence[bytes | None]:
        """A column of strings or bytes. Spark's strings may hold bytes that are not UTF-8, which its own sink passes on."""
        position = self.positions.get(name)
        return [None] * batch.num_rows if position is None else _as_binary(batch.column(position)).to_pylist()


def records_of(
    batch: pa.RecordBatch, columns: Columns, topic: str | None, first_number: int
) -> Iterator[tuple[str, OutgoingRecord]]:
    """The topic and the record of each row. Raises BadValue if a row has no topic."""
    names = [topic] * batch.num_rows if topic is not None else columns.of(batch, "topic")
    every = zip(
        names,
        columns.bytes_of(batch, "key"),
        columns.bytes_of(batch, "value"),
        columns.of(batch, "partition"),
        columns.of(batch, "headers"),
        strict=True,
    )
    for number, (name, key, value, partition, headers) in enumerate(every, first_number):
        if not isinstance(name, str) or not name:
            raise BadValue(
                "a row has no topic: its column 'topic' is null or empty; set the option 'topic', or fill the column"
            )
        if partition is not None and (not isinstance(partition, int) or partition < 0):
            raise BadValue(f"topic {name!r}: {partition!r} is not a partition")
        yield (
            name,
            OutgoingRecord(value, key, _headers(headers), partition, None, number),
        )


def _as_binary(column: pa.Array) -> pa.Array:
    if pa.types.is_large_string(column.type):
        return column.cast(pa.large_binary())
    return column.cast(pa.binary()) if pa.types.is_string(column.type) else column


def _headers(headers: object) -> tuple[tuple[str, bytes | None], ...]:
    if headers is None:
        return ()
    assert isinstance(headers, list)
    if any(one is None or one["key"] is None for one in headers):
        raise BadValue("a header has no name")
    return tuple((one["key"], one["value"]) for one in headers)
