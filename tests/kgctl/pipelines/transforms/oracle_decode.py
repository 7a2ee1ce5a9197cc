"""The expected result of decode, in plain Python with the broker's own decoders."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from broker.protocol.codec import DecodeError
from broker.protocol.consumer_protocol import decode_assignment
from broker.protocol.offsets_topic import (
    GroupMetadataKey,
    OffsetCommitKey,
    decode_group_value,
    decode_key,
    decode_offset_value,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST_MS = 253_402_300_799_999
MEMBER_KINDS = {5, 7, 8, 10, 13, 14, 19, 21, 22}
EPOCH_KINDS = {3, 6, 8, 11, 12, 14, 17, 20, 22}
LAST_KIND = 24


@dataclass
class Expected:
    """Rows by log offset, without the columns that locate the record."""

    commits: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    group_events: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    quarantine: dict[int, str] = field(default_factory=dict)
    skipped: set[int] = field(default_factory=set)


def expected(records: Iterable[tuple[bytes | None, bytes | None]]) -> Expected:
    found = Expected()
    for offset, (key, value) in enumerate(records):
        if key is None and value is None:
            found.skipped.add(offset)
            continue
        try:
            table, row = _read(key, value)
        except _Bad as bad:
            found.quarantine[offset] = str(bad)
        else:
            (found.commits if table == "commit" else found.group_events)[offset] = row
    return found


def at(ms: int | None) -> datetime | None:
    return EPOCH + timedelta(milliseconds=ms) if ms is not None and 0 <= ms <= LAST_MS else None


class _Bad(Exception):
    pass


def _read(key: bytes | None, value: bytes | None) -> tuple[str, tuple[Any, ...]]:
    if key is None or len(key) < 2:
        raise _Bad("malformed key")
    version = struct.unpack(">h", key[:2])[0]
    if not 0 <= version <= LAST_KIND:
        raise _Bad("unknown key version")
    try:
        named = decode_key(key) or _texts(key, 2 if version in MEMBER_KINDS | {16} else 1)
    except DecodeError:
        raise _Bad("malformed key") from None
    if isinstance(named, OffsetCommitKey):
        return "commit", (*named, *_commit(value))
    if isinstance(named, GroupMetadataKey):
        return "group", (named.group, version, *_group(value))
    return "group", (named[0], version, *_newer(version, named, value))


def _texts(key: bytes, count: int) -> list[str]:
    texts, position = [], 2
    for _ in range(count):
        if len(key) < position + 2:
            raise DecodeError
        size = struct.unpack_from(">h", key, position)[0]
        position += 2
        if size < 0 or position + size > len(key):
            raise DecodeError
        try:
            texts.append(key[position : position + size].decode())
        except UnicodeDecodeError:
            raise DecodeError from None
        position += size
    return texts


def _version(value: bytes, last: int) -> int:
    if len(value) < 2:
        raise _Bad("malformed value")
    version = struct.unpack(">h", value[:2])[0]
    if not 0 <= version <= last:
        raise _Bad("unknown value version")
    return version


def _commit(value: bytes | None) -> tuple[Any, ...]:
    if value is None:
        return (None, None, None, None, None, None, True)
    version = _version(value, 4)
    try:
        read = decode_offset_value(value)
    except DecodeError:
        raise _Bad("malformed value") from None
    epoch = read.leader_epoch if read.leader_epoch >= 0 else None
    return (read.offset, epoch, read.metadata, at(read.commit_timestamp), at(read.expire_timestamp), version, False)


def _group(value: bytes | None) -> tuple[Any, ...]:
    if value is None:
        return (None, None, None, None, None, None, True, None, None)
    version = _version(value, 4)
    try:
        read = decode_group_value(value)
    except DecodeError:
        raise _Bad("malformed value") from None
    members = [
        (
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            member.rebalance_timeout if member.rebalance_timeout >= 0 else None,
            member.session_timeout,
            _assigned(member.assignment) if read.protocol_type == "consumer" else None,
        )
        for member in read.members
    ]
    return (
        *(read.generation, None, read.protocol_type, read.protocol, read.leader, at(read.current_state_timestamp)),
        *(False, members, version),
    )


def _assigned(blob: bytes) -> list[tuple[str, list[int]]] | None:
    try:
        return [(row.topic, row.partitions) for row in decode_assignment(blob).assigned_partitions] if blob else []
    except DecodeError:
        return None


def _newer(version: int, named: list[str], value: bytes | None) -> tuple[Any, ...]:
    members = [(named[1], None, None, None, None, None, None)] if version in MEMBER_KINDS else None
    if value is None:
        return (None, None, None, None, None, None, True, members, None)
    _version(value, 0)
    epoch = None
    if version in EPOCH_KINDS:
        if len(value) < 6:
            raise _Bad("malformed value")
        epoch = struct.unpack_from(">i", value, 2)[0]
    return (None, epoch, None, None, None, None, False, members, 0)
