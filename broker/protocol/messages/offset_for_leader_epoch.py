"""OffsetForLeaderEpoch: the end offset of a leader epoch."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, INT16, INT32, INT64, STRING, Message, Struct, wire


class OffsetForLeaderEpochRequest(Message):
    """v3 adds the replica id."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 23, range(2, 5), 4

    class Partition(Struct):
        partition: int = wire(INT32)
        current_leader_epoch: int = wire(INT32, default=-1)
        leader_epoch: int = wire(INT32)

    class Topic(Struct):
        topic: str = wire(STRING)
        partitions: list[OffsetForLeaderEpochRequest.Partition] = wire(ARRAY("Partition"))

    replica_id: int = wire(INT32, default=-2, since=3)
    topics: list[Topic] = wire(ARRAY(Topic))


class OffsetForLeaderEpochResponse(Message):
    API_KEY, VERSIONS, FLEXIBLE_SINCE = 23, range(2, 5), 4

    class Partition(Struct):
        error_code: int = wire(INT16, default=0)
        partition: int = wire(INT32)
        leader_epoch: int = wire(INT32, default=-1)
        end_offset: int = wire(INT64, default=-1)

    class Topic(Struct):
        topic: str = wire(STRING)
        partitions: list[OffsetForLeaderEpochResponse.Partition] = wire(ARRAY("Partition"))

    throttle_time_ms: int = wire(INT32, default=0)
    topics: list[Topic] = wire(ARRAY(Topic))
