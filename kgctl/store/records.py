"""Records of topics as rows: keys and values as text, or as base64 where they are not UTF-8."""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Iterator

from broker.inspection import ABORTED, OPEN, ROW_TOPICS
from kgctl.model.store import StoreRecord
from kgctl.store.offline import Offline

TEXT, BASE64 = "text", "base64"


def records(offline: Offline, topics: Collection[str], *, uncommitted: bool) -> Iterator[StoreRecord]:
    """The records of these topics in the order of partitions and offsets.

    `uncommitted`: also those of transactions that are open or aborted. DamageError at the first damaged batch.
    """
    for partition in offline.partitions:
        if partition.topic not in topics:
            continue
        for batch in offline.directory.records(partition):
            if batch.transaction in (OPEN, ABORTED) and not uncommitted:
                continue
            for record in batch.records:
                yield StoreRecord(
                    partition.topic,
                    partition.partition,
                    record.offset,
                    batch.header.max_timestamp if batch.header.has_log_append_time else record.timestamp,
                    *_decoded(record.key),
                    *_decoded(record.value),
                    _headers(record.headers),
                    batch.transaction,
                )
    for topic in ROW_TOPICS:
        if topic in topics:
            for index, row in offline.directory.rows_by_offset(topic):
                key, value = _decoded(row.key), _decoded(row.value)
                yield StoreRecord(topic, index, row.offset, row.timestamp_ms, *key, *value, "[]", None)


def _decoded(content: bytes | None) -> tuple[str | None, str | None]:
    if content is None:
        return None, None
    try:
        return content.decode(), TEXT
    except UnicodeDecodeError:
        return base64.b64encode(content).decode(), BASE64


def _headers(headers: tuple[tuple[str, bytes | None], ...]) -> str:
    if not headers:
        return "[]"
    rows = []
    for name, content in headers:
        value, encoding = _decoded(content)
        rows.append({"name": name, "value": value, "encoding": encoding})
    return json.dumps(rows, separators=(",", ":"))
