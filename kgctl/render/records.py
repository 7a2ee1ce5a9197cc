"""Consumed records as bytes for stdout: lines in the form of Kafka's console consumer, or JSON lines."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from broker.light_dataclasses import dataclass
from broker.protocol.record_batch import Record
from kgctl.model.json_text import JsonText
from kgctl.model.topic_partition import TopicPartition

# (partition, records, whether the broker set their timestamps) -> text
RecordFormat: TypeAlias = Callable[[TopicPartition, Sequence[Record], bool], bytes]

NULL = b"null"
NO_HEADERS = b"NO_HEADERS"


@dataclass(frozen=True, slots=True)
class LineOptions:
    """The fields printed before the value, in this order, joined by `separator`."""

    timestamp: bool = False
    partition: bool = False
    offset: bool = False
    headers: bool = False
    key: bool = False
    separator: bytes = b"\t"
    headers_separator: bytes = b","
    record_separator: bytes = b"\n"
    null: bytes = NULL


def as_lines(options: LineOptions) -> RecordFormat:
    """Lines of text. Bytes pass through unchanged, so a separator inside a value is not escaped."""
    end, null = options.record_separator, options.null
    plain = not (options.timestamp or options.partition or options.offset or options.headers or options.key)

    def values(partition: TopicPartition, records: Sequence[Record], log_append_time: bool) -> bytes:
        return b"".join([(null if record.value is None else record.value) + end for record in records])

    def lines(partition: TopicPartition, records: Sequence[Record], log_append_time: bool) -> bytes:
        kind = "LogAppendTime" if log_append_time else "CreateTime"
        out = []
        for record in records:
            fields = []
            if options.timestamp:
                fields.append(b"NO_TIMESTAMP" if record.timestamp < 0 else f"{kind}:{record.timestamp}".encode())
            if options.partition:
                fields.append(b"Partition:%d" % partition.partition)
            if options.offset:
                fields.append(b"Offset:%d" % record.offset)
            if options.headers:
                fields.append(_headers_text(record, options))
            if options.key:
                fields.append(null if record.key is None else record.key)
            fields.append(null if record.value is None else record.value)
            out.append(options.separator.join(fields) + end)
        return b"".join(out)

    return values if plain else lines


def as_json_lines(partition: TopicPartition, records: Sequence[Record], log_append_time: bool) -> bytes:
    """One object per line. Keys and values that are not UTF-8 are in base64, as `key_base64` and `value_base64`.

    Those that are JsonText are parts of the object.
    """
    kind = "LogAppendTime" if log_append_time else "CreateTime"
    rows = []
    for record in records:
        row: dict[str, Any] = {
            "topic": partition.topic,
            "partition": partition.partition,
            "offset": record.offset,
            "timestamp": None if record.timestamp < 0 else record.timestamp,
            "timestamp_type": kind,
        }
        _put(row, "key", record.key)
        _put(row, "value", record.value)
        row["headers"] = []
        for name, content in record.headers:
            header: dict[str, Any] = {"key": name}
            _put(header, "value", content)
            row["headers"].append(header)
        rows.append(_dumps(row))
    return "".join(rows).encode()


def _dumps(row: dict[str, Any]) -> str:
    if isinstance(row.get("key"), JsonText) or isinstance(row.get("value"), JsonText):
        fields = [
            f'"{name}":{content.decode() if isinstance(content, JsonText) else json.dumps(content, separators=(",", ":"))}'
            for name, content in row.items()
        ]
        return "{" + ",".join(fields) + "}\n"
    return json.dumps(row, separators=(",", ":")) + "\n"


def _put(row: dict[str, Any], name: str, content: bytes | None) -> None:
    if isinstance(content, JsonText):
        row[name] = content
        return
    try:
        row[name] = None if content is None else content.decode()
    except UnicodeDecodeError:
        row[f"{name}_base64"] = base64.b64encode(content or b"").decode()


def _headers_text(record: Record, options: LineOptions) -> bytes:
    if not record.headers:
        return NO_HEADERS
    return options.headers_separator.join(
        name.encode() + b":" + (options.null if content is None else content) for name, content in record.headers
    )
