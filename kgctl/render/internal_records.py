"""Records of internal topics as readable lines or JSON lines: committed offsets, groups, transactions, events of groups."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias

from broker.protocol import offsets_topic, transaction_log
from broker.protocol.consumer_protocol import decode_assignment, decode_subscription
from broker.protocol.newer_group_records import decode_newer_key, decode_newer_value
from broker.protocol.record_batch import Record
from broker.protocol.wire_types import DecodeError, Struct
from kgctl.model.topic_partition import TopicPartition
from kgctl.model.transactions import STATES
from kgctl.render.records import RecordFormat

OFFSETS, TRANSACTIONS, EVENTS = "offsets", "transactions", "events"
TOPICS = {OFFSETS: offsets_topic.TOPIC, TRANSACTIONS: transaction_log.TOPIC, EVENTS: "__kgctl_group_events"}
# What a record is, its key, and its value; None for a value that deletes the key.
Decoded: TypeAlias = "tuple[str, dict[str, Any], Any]"
UNKNOWN = "unknown"
# The key of a value that cannot be decoded.
UNREAD = "value_base64"


def decoded_as(kind: str, *, as_json: bool) -> RecordFormat:
    """A format for the records of the topic that `kind` names. Records that cannot be decoded are shown in base64."""
    decode = _DECODERS[TOPICS[kind]]
    write = _json_line if as_json else _text_line

    def lines(partition: TopicPartition, records: Sequence[Record], log_append_time: bool) -> bytes:
        return "".join(write(partition, record, _safely(decode, record)) for record in records).encode()

    return lines


def decoded(topic: str, record: Record) -> Decoded | None:
    """A record of an internal topic; None for any other topic, and for what cannot be decoded."""
    decode = _DECODERS.get(topic)
    try:
        return None if decode is None else decode(record)
    except (DecodeError, ValueError):
        return None


def _safely(decode: Callable[[Record], Decoded], record: Record) -> Decoded:
    try:
        return decode(record)
    except (DecodeError, ValueError) as error:
        key = {"key_base64": _base64(record.key), "problem": str(error)}
        return UNKNOWN, key, None if record.value is None else {UNREAD: _base64(record.value)}


def _json_line(partition: TopicPartition, record: Record, decoded: Decoded) -> str:
    kind, key, value = decoded
    row = {
        "topic": partition.topic,
        "partition": partition.partition,
        "offset": record.offset,
        "timestamp": None if record.timestamp < 0 else record.timestamp,
        "type": kind,
        "key": key,
        "value": value,
    }
    return json.dumps(row, separators=(",", ":")) + "\n"


def _text_line(partition: TopicPartition, record: Record, decoded: Decoded) -> str:
    """ASCII only: names and metadata cannot command a terminal."""
    kind, key, value = decoded
    fields = " ".join(f"{name}={_word(found)}" for name, found in key.items())
    if value is None:
        content = "(deleted)"
    elif isinstance(value, dict):
        content = " ".join(f"{name}={_word(found, name)}" for name, found in value.items())
    else:
        content = _word(value)
    return f"{partition}@{record.offset} {_time(record.timestamp)} {kind} {fields}: {content}\n"


def _word(value: Any, name: str = "") -> str:
    if name.endswith(("timestamp", "timestamp_ms")) and isinstance(value, int):
        return _time(value)
    if isinstance(value, str) and value.isascii() and value.isprintable() and value and not set(value) & set(' "=\\'):
        return value
    return json.dumps(value, separators=(",", ":"))


def _time(ms: int) -> str:
    try:
        text = "-" if ms < 0 else datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return str(ms)
    return text.replace("+00:00", "Z")


def _offsets(record: Record) -> Decoded:
    data = bytes(record.key or b"")
    value = None if record.value is None else bytes(record.value)
    key = offsets_topic.decode_key(data)
    if isinstance(key, offsets_topic.OffsetCommitKey):
        fields = {"group": key.group, "topic": key.topic, "partition": key.partition}
        found = None if value is None else _fields(offsets_topic.decode_offset_value(value))
        if found is not None and found["expire_timestamp"] < 0:
            del found["expire_timestamp"]
        return "offset-commit", fields, found
    if key is not None:
        return "group-metadata", {"group": key.group}, None if value is None else _group(value)
    newer = decode_newer_key(data)
    if newer is None:
        raise DecodeError(f"a key of type {int.from_bytes(data[:2], 'big', signed=True)} is not known")
    kind, message = newer
    if value is None:
        return kind, _fields(message), None
    content = decode_newer_value(data, value)
    return kind, _fields(message), {UNREAD: _base64(value)} if content is None else _fields(content)


def _group(value: bytes) -> dict[str, Any]:
    group = offsets_topic.decode_group_value(value)
    found = _fields(group)
    if group.protocol_type == "consumer":
        for row, member in zip(found["members"], group.members, strict=True):
            row["subscription"] = _blob(decode_subscription, member.subscription)
            row["assignment"] = _blob(decode_assignment, member.assignment)
    return found


def _blob(decode: Callable[[bytes], Struct], data: bytes) -> Any:
    try:
        return _fields(decode(bytes(data))) if data else None
    except DecodeError:
        return _base64(data)


def _transaction(record: Record) -> Decoded:
    name = transaction_log.decode_key(bytes(record.key or b""))
    if name is None:
        raise DecodeError("a key of this type is not known")
    key = {"transactional_id": name}
    if record.value is None:
        return "transaction", key, None
    found = _fields(transaction_log.decode_value(bytes(record.value)))
    status = found.pop("transaction_status")
    state = STATES[status] if 0 <= status < len(STATES) else str(status)
    return "transaction", key, {"state": state, **found}


def _event(record: Record) -> Decoded:
    group = bytes(record.key or b"").decode()
    return "group-event", {"group": group}, None if record.value is None else json.loads(bytes(record.value))


_DECODERS = {TOPICS[OFFSETS]: _offsets, TOPICS[TRANSACTIONS]: _transaction, TOPICS[EVENTS]: _event}


def _fields(message: Struct) -> dict[str, Any]:
    return {field.name: _plain(getattr(message, field.name), field.name) for field in type(message).FIELDS}


def _plain(value: Any, name: str = "") -> Any:
    if isinstance(value, Struct):
        return _fields(value)
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, bytes | bytearray | memoryview):
        # Kafka's own form of a topic id.
        data = bytes(value)
        return base64.urlsafe_b64encode(data).decode().rstrip("=") if name == "topic_id" else _base64(data)
    return value


def _base64(data: bytes | memoryview | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()
