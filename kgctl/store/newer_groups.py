"""What a data directory holds of consumer groups of the newer protocol (KIP-848) and of share groups (KIP-932)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from broker.light_named_tuples import NamedTuple
from broker.protocol.newer_group_records import (
    CURRENT_ASSIGNMENT,
    GROUP_METADATA,
    MEMBER,
    SHARE_CURRENT_ASSIGNMENT,
    SHARE_GROUP_METADATA,
    SHARE_MEMBER,
    decode_newer_key,
    decode_newer_value,
    kind_of,
)
from broker.protocol.share_state import SharePartitionKey, ShareSnapshotValue, decode_key, decode_value

CONSUMER, SHARE = "Consumer", "Share"
_GROUPS = {GROUP_METADATA: CONSUMER, SHARE_GROUP_METADATA: SHARE}
_MEMBERS = {MEMBER: CONSUMER, SHARE_MEMBER: SHARE}
_ASSIGNMENTS = (CURRENT_ASSIGNMENT, SHARE_CURRENT_ASSIGNMENT)


@dataclass
class NewerGroup:
    """`members` and `assigned` have the values of the records, by member id."""

    type: str
    epoch: int = 0
    members: dict[str, Any] = field(default_factory=dict)
    assigned: dict[str, Any] = field(default_factory=dict)


class SharePartition(NamedTuple):
    """`start_offset` is -1 before the group has read the partition."""

    start_offset: int
    state_epoch: int


def is_newer(key: bytes) -> bool:
    """Whether a record of __consumer_offsets says something about such a group."""
    kind = kind_of(key)
    return kind in _GROUPS or kind in _MEMBERS or kind in _ASSIGNMENTS


class NewerGroups:
    """Take the newest rows of `__consumer_offsets`, in any order."""

    def __init__(self) -> None:
        self.found: dict[str, NewerGroup] = {}

    def add(self, key: bytes, value: bytes) -> None:
        kind, named, stored = kind_of(key), decode_newer_key(key), decode_newer_value(key, value)
        if named is None or stored is None:
            return
        name: Any = named[1]
        type_ = CONSUMER if kind in (GROUP_METADATA, MEMBER, CURRENT_ASSIGNMENT) else SHARE
        group = self.found.setdefault(name.group, NewerGroup(type_))
        if kind in _GROUPS:
            group.epoch = stored.epoch  # type: ignore[attr-defined]
        else:
            (group.members if kind in _MEMBERS else group.assigned)[name.member_id] = stored


def share_partitions(rows: Iterable[tuple[bytes, bytes | None]]) -> Iterator[tuple[SharePartitionKey, SharePartition]]:
    """The share partitions in all rows of `__share_group_state`, keys and values, those of a partition in their order."""
    found: dict[SharePartitionKey, SharePartition] = {}
    for raw_key, raw_value in rows:
        decoded = decode_key(raw_key)
        if decoded is None:
            continue
        key, kind = decoded
        if raw_value is None:
            found.pop(key, None)
            continue
        value = decode_value(kind, raw_value)
        before = found.get(key, SharePartition(-1, 0))
        if isinstance(value, ShareSnapshotValue):
            found[key] = SharePartition(value.start_offset, value.state_epoch)
        elif value.start_offset >= 0:
            found[key] = before._replace(start_offset=value.start_offset)
    yield from found.items()
