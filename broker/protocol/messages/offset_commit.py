"""OffsetCommit: store the committed offsets of a group."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, INT16, INT32, INT64, STRING, Message, Struct, wire


class OffsetCommitRequest(Message):
    """v5 drops the retention time; v6 adds the leader epoch (KIP-320); v7 adds the instance id (KIP-345); v9 also takes
    a member epoch in place of the generation (KIP-848).
    """

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 8, range(2, 10), 8

    class Partition(Struct):
        partition_index: int = wire(INT32)
        committed_offset: int = wire(INT64)
        committed_leader_epoch: int = wire(INT32, default=-1, since=6)
        committed_metadata: str | None = wire(STRING, null_since=0)

    class Topic(Struct):
        name: str = wire(STRING)
        partitions: list[OffsetCommitRequest.Partition] = wire(ARRAY("Partition"))

    group_id: str = wire(STRING)
    generation_id_or_member_epoch: int = wire(INT32, default=-1)
    member_id: str = wire(STRING)
    group_instance_id: str | None = wire(STRING, default=None, since=7, null_since=7)
    retention_time_ms: int = wire(INT64, default=-1, until=4)
    topics: list[Topic] = wire(ARRAY(Topic))


class OffsetCommitResponse(Message):
    """v3 adds the throttle time."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 8, range(2, 10), 8

    class Partition(Struct):
        partition_index: int = wire(INT32)
        error_code: int = wire(INT16, default=0)

    class Topic(Struct):
        name: str = wire(STRING)
        partitions: list[OffsetCommitResponse.Partition] = wire(ARRAY("Partition"))

    throttle_time_ms: int = wire(INT32, default=0, since=3)
    topics: list[Topic] = wire(ARRAY(Topic))
