"""AlterShareGroupOffsets: set the start offsets of share partitions; the group must be empty (KIP-932)."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, INT16, INT32, INT64, STRING, UUID, Message, Struct, wire


class AlterShareGroupOffsetsRequest(Message):
    API_KEY, VERSIONS, FLEXIBLE_SINCE = 91, range(1), 0

    class Partition(Struct):
        partition_index: int = wire(INT32)
        start_offset: int = wire(INT64)

    class Topic(Struct):
        topic_name: str = wire(STRING)
        partitions: list[AlterShareGroupOffsetsRequest.Partition] = wire(ARRAY("Partition"))

    group_id: str = wire(STRING)
    topics: list[Topic] = wire(ARRAY(Topic))


class AlterShareGroupOffsetsResponse(Message):
    API_KEY, VERSIONS, FLEXIBLE_SINCE = 91, range(1), 0

    class Partition(Struct):
        partition_index: int = wire(INT32)
        error_code: int = wire(INT16, default=0)
        error_message: str | None = wire(STRING, default=None, null_since=0)

    class Topic(Struct):
        topic_name: str = wire(STRING)
        topic_id: bytes = wire(UUID)
        partitions: list[AlterShareGroupOffsetsResponse.Partition] = wire(ARRAY("Partition"))

    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(STRING, default=None, null_since=0)
    responses: list[Topic] = wire(ARRAY(Topic), default=[])
