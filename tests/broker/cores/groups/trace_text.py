"""The outcome of a request in a golden scenario, as text: answers, state records, times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from broker.cores.groups.events import GroupEvent
from broker.cores.groups.records import (
    GenerationFloor,
    GroupMetadataRecord,
    GroupMetadataTombstone,
    GroupRemoval,
    OffsetCommitRecord,
    OffsetTombstone,
    PendingOffset,
    PendingOffsetsRemoval,
    PendingOffsetSuperseded,
    StateRecord,
    TopicRemoval,
)
from broker.protocol.consumer_protocol import decode_subscription
from broker.protocol.errors import ErrorCode
from broker.protocol.wire_types import Message, Struct

WALL_MS = 1_000_000_000_000
ERRORS = {int(error): error.name for error in ErrorCode}


def show_seconds(ms: int) -> str:
    return f"{ms / 1000:.3f}".rstrip("0").rstrip(".")


def show_message(message: Message, version: int) -> str:
    """The fields of the version that have a value; error codes first and by name."""
    shown = _show_fields(message, version)
    return f"{type(message).__name__.removesuffix('Response')} {shown}".rstrip()


def _show_fields(value: Struct, version: int) -> str:
    shown: list[str] = []
    for declared in type(value).FIELDS:
        item = getattr(value, declared.name)
        if (
            not declared.is_in(version)
            or declared.name == "throttle_time_ms"
            or item in (declared.default, "", b"", None)
        ):
            continue
        if declared.name.endswith("error_code"):
            shown.insert(0, ERRORS[item])
        elif declared.name != "authorized_operations":
            shown.append(f"{declared.name}={_show(item, version)}")
    return " ".join(shown)


def _show(value: Any, version: int) -> str:
    if isinstance(value, Struct):
        return "{" + _show_fields(value, version) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_show(item, version) for item in value) + "]"
    return _show_bytes(value) if isinstance(value, bytes) else str(value)


def _show_bytes(value: bytes) -> str:
    """A subscription as "@topics", anything else as text."""
    if value.startswith(b"\0\0"):
        return "@" + "+".join(decode_subscription(value).topics)
    return value.decode("latin-1")


def show_record(record: StateRecord) -> str:
    match record:
        case TopicRemoval():
            return f"offsets of topic {record.topic}: removed"
        case GroupRemoval():
            return f"offsets of group {record.group_id}: removed"
        case GenerationFloor():
            return f"generation floor of {record.group_id}: {record.generation}"
        case GroupMetadataTombstone():
            return f"group {record.group_id}: tombstone"
        case OffsetTombstone():
            return f"offset of {record.group_id} {record.topic}/{record.partition}: tombstone"
        case OffsetCommitRecord():
            return f"offset of {record.group_id} {record.topic}/{record.partition}: {record.offset}{_extras(record)}"
        case PendingOffset():
            place = f"{record.group_id} {record.topic}/{record.partition}"
            return f"pending offset of {place}: {record.offset}{_extras(record)} by {_show_producer(record)}"
        case PendingOffsetSuperseded():
            return f"pending offset of {record.group_id} {record.topic}/{record.partition}: superseded, producer {record.producer_id}"
        case PendingOffsetsRemoval():
            places = ", ".join(f"{topic}/{partition}" for topic, partition in record.places or ()) or "all"
            return f"pending offsets of {record.group_id}: removed {places} of producer {record.producer_id}"
        case GroupMetadataRecord():
            members = " ".join(f"{m.member_id}={m.assignment.decode('latin-1') or '(nothing)'}" for m in record.members)
            kind = f"{record.protocol_type or '-'}/{record.protocol or '-'}"
            return f"group {record.group_id}: generation {record.generation} {kind} leader {record.leader or '-'} {members}".rstrip()


def _show_producer(record: PendingOffset) -> str:
    return f"producer {record.producer_id}" + (f" epoch {record.producer_epoch}" if record.producer_epoch else "")


def _extras(record: OffsetCommitRecord | PendingOffset) -> str:
    epoch = f" epoch {record.leader_epoch}" if record.leader_epoch != -1 else ""
    metadata = f" ({record.metadata})" if record.metadata else ""
    expires = record.expire_timestamp_ms if isinstance(record, OffsetCommitRecord) else None
    return epoch + metadata + (f" expires at {show_seconds(expires - WALL_MS)}" if expires is not None else "")


def _show_share(topics: Mapping[str, Sequence[int]]) -> str:
    return ",".join(f"{topic}/{number}" for topic, partitions in topics.items() for number in partitions) or "(nothing)"


def show_event(event: GroupEvent, wall_ms: int) -> str:
    """An event of the history, without the numbers that it does not have."""
    cause = f"{event.cause.value}{f' ({event.reason})' if event.reason else ''}" if event.cause is not None else "-"
    numbers = {
        "members": event.members,
        "prepare_ms": event.prepare_ms,
        "complete_ms": event.complete_ms,
        "moved": event.partitions_moved,
        "rejected": event.commits_rejected or None,
    }
    words = [f"{name}={number}" for name, number in numbers.items() if number is not None]
    words += [f"+{name}" for name in event.joined]
    for name, why in zip(event.left, event.left_causes, strict=True):
        words.append(f"-{name}" if why is event.cause else f"-{name}({why.value})")
    words += [f"absent={name}" for name in event.absent]
    words += [f"{name}:{_show_share(share)}" for name, share in (event.assignment or {}).items()]
    at = show_seconds(event.wall_ms - wall_ms)
    return f"{at} {event.type.value}, generation {event.generation}: {cause} {' '.join(words)}"
