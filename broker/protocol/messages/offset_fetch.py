"""OffsetFetch: read the committed offsets of groups."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, BOOL, INT16, INT32, INT64, STRING, Message, Struct, wire


class OffsetFetchRequest(Message):
    """v2 uses null for all topics; v7 adds require_stable (KIP-447); v8 takes several groups (KIP-709); v9 adds member
    id and epoch (KIP-848).
    """

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 9, range(1, 10), 6

    class Topic(Struct):
        name: str = wire(STRING)
        partition_indexes: list[int] = wire(ARRAY(INT32))

    class Group(Struct):
        group_id: str = wire(STRING)
        member_id: str | None = wire(STRING, default=None, since=9, null_since=9)
        member_epoch: int = wire(INT32, default=-1, since=9)
        topics: list[OffsetFetchRequest.Topic] | None = wire(ARRAY("Topic"), null_since=0)

    group_id: str = wire(STRING, default="", until=7)
    topics: list[Topic] | None = wire(ARRAY(Topic), default=[], until=7, null_since=2)
    groups: list[Group] = wire(ARRAY(Group), default=[], since=8)
    require_stable: bool = wire(BOOL, default=False, since=7)


class OffsetFetchResponse(Message):
    """v2 adds the error code; v3 adds the throttle time; v5 adds the leader epoch (KIP-320); v8 answers several groups
    (KIP-709).
    """

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 9, range(1, 10), 6

    class Partition(Struct):
        partition_index: int = wire(INT32)
        committed_offset: int = wire(INT64)
        committed_leader_epoch: int = wire(INT32, default=-1, since=5)
        metadata: str | None = wire(STRING, null_since=0)
        error_code: int = wire(INT16, default=0)

    class Topic(Struct):
        name: str = wire(STRING)
        partitions: list[OffsetFetchResponse.Partition] = wire(ARRAY("Partition"))

    class Group(Struct):
        group_id: str = wire(STRING)
        topics: list[OffsetFetchResponse.Topic] = wire(ARRAY("Topic"))
        error_code: int = wire(INT16, default=0)

    throttle_time_ms: int = wire(INT32, default=0, since=3)
    topics: list[Topic] = wire(ARRAY(Topic), default=[], until=7)
    error_code: int = wire(INT16, default=0, since=2, until=7)
    groups: list[Group] = wire(ARRAY(Group), default=[], since=8)
