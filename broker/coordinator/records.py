"""Hard state as records: what `__consumer_offsets` holds of a group, and the generation floor beside it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class MemberMetadata:
    """A member as a GroupMetadataRecord keeps it; the subscription is its metadata for the chosen protocol."""

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
    """One generation of a group. An empty protocol type stands for none."""

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
    """The group is gone."""

    group_id: str
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class OffsetCommitRecord:
    """A committed offset; `expire_timestamp_ms` only where the client asked for a retention of its own."""

    group_id: str
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class OffsetTombstone:
    """The committed offset is gone."""

    group_id: str
    topic: str
    partition: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class GenerationFloor:
    """No generation up to this one may be given out again; None when the group is gone. Not part of `__consumer_offsets`."""

    group_id: str
    generation: int | None


OffsetsRecord: TypeAlias = "GroupMetadataRecord | GroupMetadataTombstone | OffsetCommitRecord | OffsetTombstone"
HardRecord: TypeAlias = "OffsetsRecord | GenerationFloor"
