"""ListOffsets: the offset for a timestamp, or at either end of the log."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, INT8, INT16, INT32, INT64, STRING, Message, Struct, wire


class ListOffsetsRequest(Message):
    """v2 adds the isolation level; v4 adds the leader epoch (KIP-320); v10 adds the timeout (KIP-1075).

    Special timestamps: -1 log end offset, -2 log start offset, -3 record with the highest timestamp (v7, KIP-734), -4
    start of the local log (v8, KIP-405), -5 last tiered offset (v9, KIP-1005).
    """

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 2, range(1, 11), 6

    class Partition(Struct):
        partition_index: int = wire(INT32)
        current_leader_epoch: int = wire(INT32, default=-1, since=4)
        timestamp: int = wire(INT64)

    class Topic(Struct):
        name: str = wire(STRING)
        partitions: list[ListOffsetsRequest.Partition] = wire(ARRAY("Partition"))

    replica_id: int = wire(INT32, default=-1)
    isolation_level: int = wire(INT8, default=0, since=2)
    topics: list[Topic] = wire(ARRAY(Topic))
    timeout_ms: int = wire(INT32, default=0, since=10)


class ListOffsetsResponse(Message):
    """v2 adds the throttle time; v4 adds the leader epoch."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 2, range(1, 11), 6

    class Partition(Struct):
        partition_index: int = wire(INT32)
        error_code: int = wire(INT16, default=0)
        timestamp: int = wire(INT64, default=-1)
        offset: int = wire(INT64, default=-1)
        leader_epoch: int = wire(INT32, default=-1, since=4)

    class Topic(Struct):
        name: str = wire(STRING)
        partitions: list[ListOffsetsResponse.Partition] = wire(ARRAY("Partition"))

    throttle_time_ms: int = wire(INT32, default=0, since=2)
    topics: list[Topic] = wire(ARRAY(Topic))
