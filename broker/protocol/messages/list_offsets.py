"""ListOffsets: the offset at a timestamp, or at an end of the log."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, INT8, INT16, INT32, INT64, STRING, Message, Struct, wire


class ListOffsetsRequest(Message):
    """v2 isolation level; v4 leader epoch (KIP-320); v7 to v9 special timestamps -3 to -5; v10 timeout (KIP-1075).

    Timestamp -1 is the end of the log, -2 its start, -3 the record with the newest timestamp.
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
    """v2 throttle time; v4 leader epoch."""

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
