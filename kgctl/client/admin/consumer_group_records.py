"""Groups of the KIP-848 protocol as coordinators store them in __consumer_offsets: several records for each generation.

A change of the members is written as the members, the epoch of the group, the target of each member, and the epoch of the
targets, which completes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from broker.light_dataclasses import dataclass, field
from broker.protocol.newer_group_records import (
    KINDS,
    ConsumerGroupMetadata,
    GroupKey,
    MemberKey,
    TargetAssignment,
    TargetAssignmentMember,
    decode_newer_key,
    decode_newer_value,
)
from broker.protocol.record_batch import Record
from kgctl.model.groups import TopicPartitions, by_topic
from kgctl.model.topic_partition import TopicPartition

EPOCH, MEMBER, TARGET_EPOCH, TARGET = (KINDS[number] for number in (3, 5, 6, 7))

Owned = tuple[TopicPartitions, ...]


class Take(Protocol):
    """Receives a stored generation of a group: the members and what they own, None if not known.

    `generation` is None if the group was deleted, or is stored as one of the other protocol from now on.
    """

    def __call__(
        self, group: str, timestamp: int, generation: int | None, members: Mapping[str, Owned | None] | None
    ) -> None: ...


@dataclass(slots=True)
class _Group:
    """`is_whole`: all its records have been seen, and so all its members."""

    is_whole: bool
    members: dict[str, None] = field(default_factory=dict)
    targets: dict[str, Owned | None] = field(default_factory=dict)

    def note(self, kind: str, member: str, owned: Owned | None, *, is_gone: bool) -> None:
        if is_gone:
            (self.members if kind == MEMBER else self.targets).pop(member, None)
        elif kind == MEMBER:
            self.members[member] = None
        else:
            self.targets[member] = owned


class ConsumerGroups:
    """Puts generations together from records, over several readings."""

    def __init__(self) -> None:
        self._groups: dict[str, _Group] = {}

    def add(self, record: Record, timestamp: int, take: Take, *, is_whole: bool) -> None:
        """A record with a key. `is_whole`: the reading began at the start of the partition. DecodeError if malformed."""
        data = bytes(record.key or b"")
        kind, key = decode_newer_key(data) or ("", None)
        if kind not in (EPOCH, MEMBER, TARGET_EPOCH, TARGET) or not isinstance(key, (GroupKey, MemberKey)):
            return
        name = key.group
        group = self._groups.setdefault(name, _Group(is_whole))
        if record.value is None and kind == EPOCH:
            # All records of the next group of this name follow.
            self._groups[name] = _Group(is_whole=True)
            take(name, timestamp, None, {})
            return
        value = None if record.value is None else decode_newer_value(data, bytes(record.value))
        if isinstance(key, MemberKey):
            group.note(kind, key.member_id, _owned(value), is_gone=record.value is None)
        elif isinstance(value, TargetAssignment):
            members = {member: group.targets.get(member, ()) for member in group.members}
            take(name, timestamp, value.assignment_epoch, members if group.is_whole else None)
        elif isinstance(value, ConsumerGroupMetadata) and group.is_whole and not group.members:
            # No targets follow for a group without members.
            take(name, timestamp, value.epoch, {})


def _owned(value: object) -> Owned | None:
    """What a member is to own; None if this cannot be read. Topics have ids, which is enough to compare targets."""
    if not isinstance(value, TargetAssignmentMember):
        return None
    return by_topic(
        TopicPartition(topic.topic_id.hex(), number) for topic in value.topic_partitions for number in topic.partitions
    )
