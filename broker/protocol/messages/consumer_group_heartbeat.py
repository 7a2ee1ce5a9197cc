"""ConsumerGroupHeartbeat: how a member joins, stays in and leaves a group of the consumer protocol (KIP-848)."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, INT16, INT32, STRING, UUID, Message, Struct, wire


class ConsumerGroupHeartbeatRequest(Message):
    """Epoch 0 joins, -1 leaves, -2 leaves as a static member that will come back. None: not changed since the last heartbeat.

    v1 adds the regular expression, and its members choose their own ids (KIP-1082).
    """

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 68, range(2), 0

    class TopicPartitions(Struct):
        topic_id: bytes = wire(UUID)
        partitions: list[int] = wire(ARRAY(INT32))

    group_id: str = wire(STRING)
    member_id: str = wire(STRING)
    member_epoch: int = wire(INT32)
    instance_id: str | None = wire(STRING, default=None, null_since=0)
    rack_id: str | None = wire(STRING, default=None, null_since=0)
    rebalance_timeout_ms: int = wire(INT32, default=-1)
    subscribed_topic_names: list[str] | None = wire(ARRAY(STRING), default=None, null_since=0)
    subscribed_topic_regex: str | None = wire(STRING, default=None, since=1, null_since=1)
    server_assignor: str | None = wire(STRING, default=None, null_since=0)
    topic_partitions: list[TopicPartitions] | None = wire(ARRAY(TopicPartitions), default=None, null_since=0)


class ConsumerGroupHeartbeatResponse(Message):
    """The assignment is None if the member already has it, and empty if the member shall give up everything."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 68, range(2), 0

    class TopicPartitions(Struct):
        topic_id: bytes = wire(UUID)
        partitions: list[int] = wire(ARRAY(INT32))

    class Assignment(Struct):
        topic_partitions: list[ConsumerGroupHeartbeatResponse.TopicPartitions] = wire(ARRAY("TopicPartitions"))

    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(STRING, default=None, null_since=0)
    member_id: str | None = wire(STRING, default=None, null_since=0)
    member_epoch: int = wire(INT32, default=0)
    heartbeat_interval_ms: int = wire(INT32, default=0)
    assignment: Assignment | None = wire(Assignment, default=None, null_since=0)
