"""Metrics of OpenTelemetry: what librdkafka and Java send, all kinds of points, and malformed bytes."""

from __future__ import annotations

import random
import struct
from contextlib import suppress
from pathlib import Path

import pytest

from broker.protocol.otlp import MOST_POINTS, Point, read_metrics
from broker.protocol.wire_types import DecodeError

FROM_LIBRDKAFKA = Path(__file__).with_name("librdkafka_metrics.bin").read_bytes()
TIME_MS = 1_700_000_000_123


def varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def field(number: int, value: bytes | int | float) -> bytes:
    """A message or text, a varint, or a double."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def fixed(number: int, value: int) -> bytes:
    return varint(number << 3 | 1) + struct.pack("<Q", value & 2**64 - 1)


def metrics(*found: bytes) -> bytes:
    scope = field(1, field(1, b"scope")) + b"".join(field(2, each) for each in found)
    return field(1, field(1, b"") + field(2, scope))


def label(key: bytes, value: bytes) -> bytes:
    return field(1, key) + field(2, value)


TIME = fixed(3, TIME_MS * 1_000_000)


def test_the_metrics_of_librdkafka_are_read() -> None:
    points = read_metrics(FROM_LIBRDKAFKA)
    assert len(points) == 10
    found = {point.metric: point for point in points}
    latency = found["org.apache.kafka.producer.node.request.latency.max"]
    assert (latency.kind, latency.labels, latency.value) == ("gauge", (("node.id", "1"),), 1)
    created = found["org.apache.kafka.producer.connection.creation.total"]
    assert (created.kind, created.is_delta, created.is_monotonic, created.value) == ("sum", True, True, 0)


def test_every_kind_of_point_is_read() -> None:
    labels = field(7, label(b"s", field(1, b"text"))) + field(7, label(b"b", field(2, 1)))
    labels += field(7, label(b"i", field(3, 2**64 - 5))) + field(7, label(b"d", field(4, 1.5)))
    gauge = field(1, b"g") + field(3, b"ms") + field(5, field(1, TIME + field(4, 2.5) + labels))
    total = field(1, b"s") + field(7, field(1, TIME + fixed(6, -3)) + field(2, 2) + field(3, 1))
    row = TIME + fixed(4, 9) + field(5, 4.5) + field(9, label(b"k", field(1, b"v")))
    histogram = field(1, b"h") + field(9, field(1, row) + field(2, 1))
    unknown = field(1, b"u") + field(11, field(1, TIME)) + field(99, 7)
    assert read_metrics(metrics(gauge, total, histogram, unknown)) == [
        Point(
            *("g", "gauge", "ms", (("s", "text"), ("b", "true"), ("i", "-5"), ("d", "1.5"))),
            *(2.5, None, False, False, TIME_MS),
        ),
        Point("s", "sum", "", (), -3, None, False, True, TIME_MS),
        Point("h", "histogram", "", (("k", "v"),), 4.5, 9, True, False, TIME_MS),
    ]
    assert read_metrics(b"") == []


@pytest.mark.parametrize(
    "data",
    [
        b"\x0a",
        b"\x0a\x05abc",
        b"\x0b",
        b"\xff" * 11,
        field(1, 7),
        metrics(field(1, b"\xff") + field(5, field(1, TIME))),
        metrics(field(1, b"m") + field(5, field(1, field(4, b"short")))),
        metrics(field(1, b"m") + field(5, field(1, b"") * (MOST_POINTS + 1))),
    ],
)
def test_malformed_metrics_are_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        read_metrics(data)


def test_changed_bytes_are_read_or_refused() -> None:
    rng = random.Random(5)
    for _ in range(300):
        data = bytearray(FROM_LIBRDKAFKA)
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        with suppress(DecodeError):
            read_metrics(bytes(data[: rng.randrange(len(data) + 1)]))
