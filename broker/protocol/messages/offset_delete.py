"""OffsetDelete: delete committed offsets of a group (KIP-496). It has no flexible version."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, INT16, INT32, STRING, Message, Struct, wire


class OffsetDeleteRequest(Message):
    API_KEY, VERSIONS = 47, range(1)

    class Partition(Struct):
        partition_index: int = wire(INT32)

    class Topic(Struct):
        name: str = wire(STRING)
        partitions: list[OffsetDeleteRequest.Partition] = wire(ARRAY("Partition"))

    group_id: str = wire(STRING)
    topics: list[Topic] = wire(ARRAY(Topic))


class OffsetDeleteResponse(Message):
    API_KEY, VERSIONS = 47, range(1)

    class Partition(Struct):
        partition_index: int = wire(INT32)
        error_code: int = wire(INT16, default=0)

    class Topic(Struct):
        name: str = wire(STRING)
        partitions: list[OffsetDeleteResponse.Partition] = wire(ARRAY("Partition"))

    error_code: int = wire(INT16, default=0)
    throttle_time_ms: int = wire(INT32, default=0)
    topics: list[Topic] = wire(ARRAY(Topic))
