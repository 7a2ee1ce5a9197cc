"""DescribeTopicPartitions: partitions of topics, in pages (KIP-966)."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, BOOL, INT16, INT32, STRING, UUID, Message, Struct, wire


class DescribeTopicPartitionsRequest(Message):
    API_KEY, VERSIONS, FLEXIBLE_SINCE = 75, range(1), 0

    class Topic(Struct):
        name: str = wire(STRING)

    class Cursor(Struct):
        topic_name: str = wire(STRING)
        partition_index: int = wire(INT32)

    topics: list[Topic] = wire(ARRAY(Topic))
    response_partition_limit: int = wire(INT32, default=2000)
    cursor: Cursor | None = wire(Cursor, default=None, null_since=0)


class DescribeTopicPartitionsResponse(Message):
    """Replica lists are empty rather than null: Kafka's admin client fails on null."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 75, range(1), 0

    class Partition(Struct):
        error_code: int = wire(INT16, default=0)
        partition_index: int = wire(INT32)
        leader_id: int = wire(INT32)
        leader_epoch: int = wire(INT32, default=-1)
        replica_nodes: list[int] = wire(ARRAY(INT32))
        isr_nodes: list[int] = wire(ARRAY(INT32))
        eligible_leader_replicas: list[int] | None = wire(ARRAY(INT32), default=None, null_since=0)
        last_known_elr: list[int] | None = wire(ARRAY(INT32), default=None, null_since=0)
        offline_replicas: list[int] = wire(ARRAY(INT32))

    class Topic(Struct):
        error_code: int = wire(INT16, default=0)
        name: str | None = wire(STRING, null_since=0)
        topic_id: bytes = wire(UUID)
        is_internal: bool = wire(BOOL, default=False)
        partitions: list[DescribeTopicPartitionsResponse.Partition] = wire(ARRAY("Partition"))
        topic_authorized_operations: int = wire(INT32, default=-(2**31))

    class Cursor(Struct):
        topic_name: str = wire(STRING)
        partition_index: int = wire(INT32)

    throttle_time_ms: int = wire(INT32, default=0)
    topics: list[Topic] = wire(ARRAY(Topic))
    next_cursor: Cursor | None = wire(Cursor, default=None, null_since=0)
