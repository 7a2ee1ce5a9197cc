"""State records of groups: those that `__consumer_offsets` holds, as Kafka encodes them, and those that are kept beside it."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

from broker.light_dataclasses import dataclass
from broker.light_named_tuples import NamedTuple
from broker.protocol.offsets_topic import (
    PARTITIONS,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_group_value,
    decode_key,
    decode_offset_value,
    encode_key,
    encode_offset_key,
    encode_offset_value,
    encode_value,
    partition_for,
)

if TYPE_CHECKING:
    from broker.cores.groups.records.consumer import ConsumerRecord
    from broker.cores.groups.records.share import ShareRecord


@dataclass(frozen=True, slots=True)
class MemberMetadata:
    """A member in a GroupMetadataRecord. The subscription is its metadata for the selected protocol."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class GroupMetadataRecord:
    """One generation of a classic group. An empty protocol type means none."""

    group_id: str
    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    state_timestamp_ms: int
    members: tuple[MemberMetadata, ...]
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class GroupMetadataTombstone:
    """The group was deleted, or becomes one of another type, which keeps its offsets."""

    group_id: str
    timestamp_ms: int
    keeps_offsets: bool = False


class OffsetCommitRecord(NamedTuple):
    """A committed offset. `expire_timestamp_ms` is set only if the client asked for a retention."""

    group_id: str
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int | None = None


class OffsetTombstone(NamedTuple):
    """The committed offset was deleted."""

    group_id: str
    topic: str
    partition: int
    timestamp_ms: int


class PendingOffset(NamedTuple):
    """An offset that becomes a committed one if the open transaction of this producer commits. Not part of `__consumer_offsets`.

    `superseded`: a later commit of the same partition has become durable, and wins over this one.
    """

    producer_id: int
    producer_epoch: int
    group_id: str
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    superseded: bool = False


class PendingOffsetsRemoval(NamedTuple):
    """Pending offsets of a producer are gone: all of a group, or those of some partitions."""

    producer_id: int
    group_id: str
    places: tuple[tuple[str, int], ...] | None = None


class PendingOffsetSuperseded(NamedTuple):
    """The pending offset loses against a later commit. It stays pending until its transaction ends."""

    producer_id: int
    group_id: str
    topic: str
    partition: int


@dataclass(frozen=True, slots=True)
class GenerationFloor:
    """Generations up to this one must not be given out again; None removes the floor. Not part of `__consumer_offsets`."""

    group_id: str
    generation: int | None


@dataclass(frozen=True, slots=True)
class TopicRemoval:
    """What any group committed for the topic until now is gone. Not part of `__consumer_offsets`, where tombstones follow."""

    topic: str


@dataclass(frozen=True, slots=True)
class GroupRemoval:
    """What the group committed until now is gone. Not part of `__consumer_offsets`, where tombstones follow."""

    group_id: str


OffsetsRecord: TypeAlias = (
    "GroupMetadataRecord | GroupMetadataTombstone | OffsetCommitRecord | OffsetTombstone | ConsumerRecord | ShareRecord"
)
PendingRecord: TypeAlias = "PendingOffset | PendingOffsetsRemoval | PendingOffsetSuperseded"
StateRecord: TypeAlias = "OffsetsRecord | PendingRecord | GenerationFloor | TopicRemoval | GroupRemoval"


class OffsetsRow(NamedTuple):
    """A state record as a row of `__consumer_offsets`. A tombstone has no value."""

    partition: int
    key: bytes
    value: bytes | None
    timestamp_ms: int


@cache
def consumer_records() -> Any:
    """Loaded at their first use: most brokers have no consumer groups."""
    return import_module("broker.cores.groups.records.consumer")


@cache
def share_records() -> Any:
    return import_module("broker.cores.groups.records.share")


def to_row(record: OffsetsRecord, partitions: int = PARTITIONS) -> OffsetsRow:
    """Encode a record as Kafka does; `partitions` is the partition count of `__consumer_offsets`."""
    partition = partition_for(record.group_id, partitions)
    if isinstance(record, OffsetCommitRecord):
        key = encode_offset_key(record.group_id, record.topic, record.partition)
        return OffsetsRow(partition, key, _offset_value(record), record.commit_timestamp_ms)
    if isinstance(record, OffsetTombstone):
        key = encode_offset_key(record.group_id, record.topic, record.partition)
        return OffsetsRow(partition, key, None, record.timestamp_ms)
    if not isinstance(record, (GroupMetadataRecord, GroupMetadataTombstone)):
        newer_key, newer_value = consumer_records().encode(record) or share_records().encode(record)
        return OffsetsRow(partition, newer_key, newer_value, record.timestamp_ms)
    value = encode_value(_group_value(record)) if isinstance(record, GroupMetadataRecord) else None
    return OffsetsRow(partition, encode_key(GroupMetadataKey(record.group_id)), value, record.timestamp_ms)


def from_row(key: bytes, value: bytes | None, timestamp_ms: int) -> OffsetsRecord | None:
    """Decode a row; None for a kind of record that this version does not know. Raises DecodeError for invalid bytes."""
    name = decode_key(key)
    if name is None:
        found: OffsetsRecord | None = consumer_records().decode(key, value, timestamp_ms)
        return found or share_records().decode(key, value, timestamp_ms)
    if isinstance(name, OffsetCommitKey):
        if value is None:
            return OffsetTombstone(name.group, name.topic, name.partition, timestamp_ms)
        return _offset_record(name, decode_offset_value(value))
    if value is None:
        return GroupMetadataTombstone(name.group, timestamp_ms)
    return _group_record(name.group, decode_group_value(value), timestamp_ms)


def _offset_value(record: OffsetCommitRecord) -> bytes:
    _, _, _, offset, leader_epoch, metadata, commit_timestamp_ms, expire_timestamp_ms = record
    if expire_timestamp_ms is None:
        return encode_offset_value(offset, leader_epoch, metadata, commit_timestamp_ms)
    return encode_value(
        OffsetCommitValue(
            offset=offset,
            leader_epoch=leader_epoch,
            metadata=metadata,
            commit_timestamp=commit_timestamp_ms,
            expire_timestamp=expire_timestamp_ms,
        )
    )


def _offset_record(name: OffsetCommitKey, value: OffsetCommitValue) -> OffsetCommitRecord:
    return OffsetCommitRecord(
        name.group,
        name.topic,
        name.partition,
        value.offset,
        value.leader_epoch,
        value.metadata,
        value.commit_timestamp,
        None if value.expire_timestamp == -1 else value.expire_timestamp,
    )


def _group_value(record: GroupMetadataRecord) -> GroupMetadataValue:
    return GroupMetadataValue(
        protocol_type=record.protocol_type,
        generation=record.generation,
        protocol=record.protocol,
        leader=record.leader,
        current_state_timestamp=record.state_timestamp_ms,
        members=[
            GroupMetadataValue.Member(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.subscription,
                assignment=member.assignment,
            )
            for member in record.members
        ],
    )


def _group_record(group_id: str, value: GroupMetadataValue, timestamp_ms: int) -> GroupMetadataRecord:
    return GroupMetadataRecord(
        group_id,
        value.protocol_type,
        value.generation,
        value.protocol,
        value.leader,
        value.current_state_timestamp,
        tuple(
            MemberMetadata(
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                member.rebalance_timeout,
                member.session_timeout,
                member.subscription,
                member.assignment,
            )
            for member in value.members
        ),
        timestamp_ms,
    )
