"""ShareGroupHeartbeat: how a member joins, stays in and leaves a share group (KIP-932)."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, INT16, INT32, STRING, UUID, Message, Struct, wire


class ShareGroupHeartbeatRequest(Message):
    """Epoch 0 joins, -1 leaves. None: not changed since the last heartbeat. v1 is the first stable version."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 76, range(1, 2), 0

    group_id: str = wire(STRING)
    member_id: str = wire(STRING)
    member_epoch: int = wire(INT32)
    rack_id: str | None = wire(STRING, default=None, null_since=0)
    subscribed_topic_names: list[str] | None = wire(ARRAY(STRING), default=None, null_since=0)


class ShareGroupHeartbeatResponse(Message):
    """The assignment is None if the member already has it."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 76, range(1, 2), 0

    class TopicPartitions(Struct):
        topic_id: bytes = wire(UUID)
        partitions: list[int] = wire(ARRAY(INT32))

    class Assignment(Struct):
        topic_partitions: list[ShareGroupHeartbeatResponse.TopicPartitions] = wire(ARRAY("TopicPartitions"))

    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(STRING, default=None, null_since=0)
    member_id: str | None = wire(STRING, default=None, null_since=0)
    member_epoch: int = wire(INT32, default=0)
    heartbeat_interval_ms: int = wire(INT32, default=0)
    assignment: Assignment | None = wire(Assignment, default=None, null_since=0)
