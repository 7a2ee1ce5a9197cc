"""Derives events of a classic group from the generations that its coordinator stores: what each one changes is an event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from broker.light_dataclasses import dataclass, field
from broker.protocol.consumer_protocol import PROTOCOL_TYPE, decode_assignment
from broker.protocol.offsets_topic import GroupMetadataValue
from broker.protocol.wire_types import DecodeError
from kgctl.client.admin.group_records import LAST_MS, GroupRecord
from kgctl.model.groups import TopicPartitions, by_topic
from kgctl.model.history import DELETED, EMPTY, GROUP_DELETED, REPLACED, STABLE, GroupEventRow, MemberClient
from kgctl.model.topic_partition import TopicPartition
from kgctl.model.watched import Assignment
from kgctl.watch.assignments import partitions_moved

CLASSIC_TYPE = "classic"


@dataclass(frozen=True, slots=True)
class StoredGeneration:
    """A stored generation: its members, and what they own; None if the assignments are not those of consumers.

    `timestamp` is when the record was stored, `state_ms` when the group entered its state.
    """

    group: str
    timestamp: int
    generation: int
    state_ms: int
    members: Mapping[str, MemberClient] = field(default_factory=dict)
    assignment: Assignment | None = None


def generation_of(record: GroupRecord) -> StoredGeneration | None:
    """None for a tombstone."""
    value = record.value
    if not isinstance(value, GroupMetadataValue):
        return None
    is_consumer = value.protocol_type == PROTOCOL_TYPE
    owned = {one.member_id: _owned(one.assignment) if is_consumer else None for one in value.members}
    known = {name: some for name, some in owned.items() if some is not None}
    members = {one.member_id: MemberClient(one.client_id, one.client_host) for one in value.members}
    assignment = known if len(known) == len(owned) else None
    since_ms = value.current_state_timestamp
    state_ms = since_ms if 0 <= since_ms <= LAST_MS else record.timestamp
    return StoredGeneration(record.group, record.timestamp, value.generation, state_ms, members, assignment)


def event_between(before: StoredGeneration | None, now: StoredGeneration) -> GroupEventRow | None:
    """What a generation changes; None if it repeats what is known, as after a change of the coordinator.

    Without one before, who joined is known only of the first generation.
    """
    kind = STABLE if now.members else EMPTY
    if before is None:
        is_new = now.generation <= 1
        if is_new:
            return _row(now, kind, joined=now.members, left={}) if now.members else None
        return _row(now, kind)
    joined = {name: client for name, client in now.members.items() if name not in before.members}
    left = {name: client for name, client in before.members.items() if name not in now.members}
    if now.generation == before.generation:
        return _row(now, REPLACED, joined=joined, left=left) if joined or left else None
    if not now.members and not before.members:
        return None
    moved = partitions_moved(before.assignment, now.assignment) if now.members else None
    return _row(now, kind, joined=joined, left=left, moved=moved)


def deletion(before: StoredGeneration, timestamp: int) -> GroupEventRow:
    gone = StoredGeneration(before.group, timestamp, before.generation, timestamp)
    return _row(gone, DELETED, joined={}, left=before.members, cause=GROUP_DELETED)


def _row(
    stored: StoredGeneration,
    event: str,
    *,
    joined: Mapping[str, MemberClient] | None = None,
    left: Mapping[str, MemberClient] | None = None,
    moved: int | None = None,
    cause: str | None = None,
) -> GroupEventRow:
    is_stable: dict[str, Any] = {"assignment": stored.assignment} if event == STABLE else {}
    return GroupEventRow(
        group=stored.group,
        timestamp=stored.timestamp if event == REPLACED else stored.state_ms,
        generation=stored.generation,
        event=event,
        cause=cause,
        reason=None,
        prepare_ms=None,
        complete_ms=None,
        members=len(stored.members),
        joined_count=None if joined is None else len(joined),
        left_count=None if left is None else len(left),
        partitions_moved=moved,
        commits_rejected=0,
        joined=tuple(joined or ()),
        left=tuple(left or ()),
        group_type=CLASSIC_TYPE,
        clients={**(joined or {}), **(left or {})},
        is_derived=True,
        **is_stable,
    )


def _owned(blob: bytes) -> tuple[TopicPartitions, ...] | None:
    try:
        decoded = decode_assignment(blob)
    except DecodeError:
        return None
    return by_topic(
        TopicPartition(topic.topic, number) for topic in decoded.assigned_partitions for number in topic.partitions
    )
