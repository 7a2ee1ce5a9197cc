"""Prepared answers about records."""

from __future__ import annotations

import base64
import json

from kgctl.model.browsed import BrowsedHeader, BrowsedRecord, Gap, LogBounds, Payload, RecordsPage
from kgctl.model.failure import RowError
from kgctl.model.topic_partition import TopicPartition
from kgctl.model.transactions import Hold
from tests.kgctl.tui.snapshots import NOW_MS

JSON = json.dumps(
    {"id": 7, "customer": "Zo\u00eb", "items": [{"sku": "a-1", "n": 2}], "note": "\x1b[31m[red]"}
).encode()


def payload(data: bytes, size: int | None = None, decoded: str | None = None) -> Payload:
    return Payload(len(data) if size is None else size, base64.b64encode(data).decode(), decoded)


def record(offset: int, value: bytes | None = b"v", key: bytes | None = b"k", **more: object) -> BrowsedRecord:
    return BrowsedRecord(
        offset,
        NOW_MS + offset,
        None if key is None else payload(key),
        None if value is None else payload(value),
        **more,  # type: ignore[arg-type]
    )


def stuck() -> RecordsPage:
    """Every kind of content, gaps, an aborted and an open transaction; the group billing is at offset 406."""
    return RecordsPage(
        "orders",
        0,
        LogBounds(100, 412, 414, 406, 3),
        406,
        (
            *(record(offset, b"plain text %d" % offset, b"order-%d" % offset) for offset in range(400, 404)),
            record(
                406, JSON, b"order-7", headers=(BrowsedHeader("trace\x07", payload(b"abc")), BrowsedHeader("n", None))
            ),
            record(407, b"\x00\x00\x00\x00\x07\xffbinary", (5).to_bytes(8, "big")),
            BrowsedRecord(408, None, None, payload(b"x" * 200, 40_000)),
            record(409, None, b"[/]\x1b]0;title\x07"),
            record(410, b"not for everybody", transaction="aborted"),
            record(412, "\u6ce8\u6587".encode(), transaction="open"),
            record(413, b"", transaction="open"),
        ),
        (Gap(404, 405, 0), Gap(411, 411, 1)),
        hold=Hold(TopicPartition("orders", 0), 412, 414, 4001, "orders-tx", 95_000),
    )


def damaged() -> RecordsPage:
    return RecordsPage(
        "orders",
        0,
        LogBounds(0, 9, 9, 3, 3),
        3,
        tuple(record(offset) for offset in range(3)),
        error=RowError("CORRUPT_MESSAGE", "orders-0, offset 3: the checksum of the batch is wrong"),
    )
