"""DescribeShareGroupOffsets: the start offsets of share partitions (KIP-932)."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, INT16, INT32, INT64, STRING, UUID, Message, Struct, wire


class DescribeShareGroupOffsetsRequest(Message):
    """No topics (None) means all."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 90, range(1), 0

    class Topic(Struct):
        topic_name: str = wire(STRING)
        partitions: list[int] = wire(ARRAY(INT32))

    class Group(Struct):
        group_id: str = wire(STRING)
        topics: list[DescribeShareGroupOffsetsRequest.Topic] | None = wire(ARRAY("Topic"), null_since=0)

    groups: list[Group] = wire(ARRAY(Group))


class DescribeShareGroupOffsetsResponse(Message):
    """The start offset is -1 if the partition has none yet."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 90, range(1), 0

    class Partition(Struct):
        partition_index: int = wire(INT32)
        start_offset: int = wire(INT64)
        leader_epoch: int = wire(INT32, default=0)
        error_code: int = wire(INT16, default=0)
        error_message: str | None = wire(STRING, default=None, null_since=0)

    class Topic(Struct):
        topic_name: str = wire(STRING)
        topic_id: bytes = wire(UUID)
        partitions: list[DescribeShareGroupOffsetsResponse.Partition] = wire(ARRAY("Partition"))

    class Group(Struct):
        group_id: str = wire(STRING)
        topics: list[DescribeShareGroupOffsetsResponse.Topic] = wire(ARRAY("Topic"), default=[])
        error_code: int = wire(INT16, default=0)
        error_message: str | None = wire(STRING, default=None, null_since=0)

    throttle_time_ms: int = wire(INT32, default=0)
    groups: list[Group] = wire(ARRAY(Group))
