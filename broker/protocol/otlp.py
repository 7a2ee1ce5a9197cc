"""Reads metrics of clients: the fields that are shown of MetricsData of OpenTelemetry, in the encoding of Protobuf.

The numbers of the fields are those of opentelemetry/proto/metrics/v1/metrics.proto. Unknown fields are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct, error

from broker.light_named_tuples import NamedTuple
from broker.protocol.wire_types import DecodeError

GAUGE, SUM, HISTOGRAM = "gauge", "sum", "histogram"
# How many points are read of one push: a few bytes can stand for a point.
MOST_POINTS = 10_000
_DELTA = 1
_DOUBLE, _SIGNED, _UNSIGNED = Struct("<d"), Struct("<q"), Struct("<Q")
_WIDTHS = {1: 8, 5: 4}
_LONGEST_VARINT = 10


class Point(NamedTuple):
    """One value of a metric. `observations` are those of a histogram, whose value is their sum. `is_delta`: since the push before."""

    metric: str
    kind: str
    unit: str
    labels: tuple[tuple[str, str], ...]
    value: float | int | None
    observations: int | None
    is_delta: bool
    is_monotonic: bool
    time_ms: int


def read_metrics(data: bytes) -> list[Point]:
    """All points of a push, in its order. DecodeError if it is malformed or has too many points."""
    points: list[Point] = []
    try:
        for resource in _messages(data, 1):
            for scope in _messages(resource, 2):
                for metric in _messages(scope, 2):
                    for point in _points(metric):
                        if len(points) >= MOST_POINTS:
                            raise DecodeError(f"the metrics have more than {MOST_POINTS} points")
                        points.append(point)
    except (IndexError, UnicodeDecodeError, error) as failure:
        raise DecodeError(f"the metrics are malformed: {failure}") from failure
    return points


def _points(metric: bytes) -> Iterator[Point]:
    name = unit = ""
    found: list[tuple[str, bytes]] = []
    for number, value in _fields(metric):
        if number == 1:
            name = _text(value)
        elif number == 3:
            unit = _text(value)
        elif number in (5, 7, 9):
            found.append(({5: GAUGE, 7: SUM, 9: HISTOGRAM}[number], _bytes(value)))
    for kind, body in found:
        is_delta = is_monotonic = False
        rows = []
        for number, value in _fields(body):
            if number == 1:
                rows.append(_bytes(value))
            elif number == 2:
                is_delta = value == _DELTA
            elif number == 3:
                is_monotonic = bool(value)
        for row in rows:
            labels, number_value, count, time_ms = _histogram(row) if kind == HISTOGRAM else _number(row)
            yield Point(name, kind, unit, labels, number_value, count, is_delta, is_monotonic, time_ms)


_Fields = tuple[tuple[tuple[str, str], ...], "float | int | None", "int | None", int]


def _number(row: bytes) -> _Fields:
    labels: list[tuple[str, str]] = []
    value: float | int | None = None
    time_ms = 0
    for number, field in _fields(row):
        if number == 3:
            time_ms = _UNSIGNED.unpack(_bytes(field))[0] // 1_000_000
        elif number == 4:
            value = _DOUBLE.unpack(_bytes(field))[0]
        elif number == 6:
            value = _SIGNED.unpack(_bytes(field))[0]
        elif number == 7:
            labels.append(_label(_bytes(field)))
    return tuple(labels), value, None, time_ms


def _histogram(row: bytes) -> _Fields:
    labels: list[tuple[str, str]] = []
    value: float | None = None
    count = time_ms = 0
    for number, field in _fields(row):
        if number == 3:
            time_ms = _UNSIGNED.unpack(_bytes(field))[0] // 1_000_000
        elif number == 4:
            count = _UNSIGNED.unpack(_bytes(field))[0]
        elif number == 5:
            value = _DOUBLE.unpack(_bytes(field))[0]
        elif number == 9:
            labels.append(_label(_bytes(field)))
    return tuple(labels), value, count, time_ms


def _label(pair: bytes) -> tuple[str, str]:
    """A KeyValue; values that are lists or maps are left out."""
    key, shown = "", ""
    for number, field in _fields(pair):
        if number == 1:
            key = _text(field)
        elif number == 2:
            for kind, value in _fields(_bytes(field)):
                if kind == 1:
                    shown = _text(value)
                elif kind == 2:
                    shown = "true" if value else "false"
                elif kind == 3 and isinstance(value, int):
                    shown = str(value - 2**64 if value >= 2**63 else value)
                elif kind == 4:
                    shown = repr(_DOUBLE.unpack(_bytes(value))[0])
    return key, shown


def _messages(data: bytes, wanted: int) -> Iterator[bytes]:
    return (_bytes(value) for number, value in _fields(data) if number == wanted)


def _text(value: int | bytes) -> str:
    return _bytes(value).decode()


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise DecodeError("the metrics are malformed: a number instead of bytes")
    return value


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message: numbers of type varint as int, all others as bytes."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        kind = tag & 7
        if kind == 0:
            value, position = _varint(data, position)
            yield tag >> 3, value
            continue
        if kind == 2:
            size, position = _varint(data, position)
        elif kind in _WIDTHS:
            size = _WIDTHS[kind]
        else:
            raise DecodeError(f"the metrics are malformed: wire type {kind}")
        if size > len(data) - position:
            raise DecodeError("the metrics are malformed: they end too early")
        yield tag >> 3, data[position : position + size]
        position += size


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 7 * _LONGEST_VARINT, 7):
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise DecodeError("the metrics are malformed: a number is too long")
