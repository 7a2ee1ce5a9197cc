"""Values that Kafka writes to __consumer_offsets for share groups (KIP-932). Their keys are in `newer_group_records`.

The target assignment has the values of consumer groups.
"""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, INT8, INT32, INT64, STRING, UUID, Message, Struct, wire


class TopicPartitions(Struct):
    topic_id: bytes = wire(UUID)
    partitions: list[int] = wire(ARRAY(INT32))


class ShareGroupMember(Message):
    VERSIONS, FLEXIBLE_SINCE = range(1), 0

    rack_id: str | None = wire(STRING, null_since=0)
    client_id: str = wire(STRING)
    client_host: str = wire(STRING)
    subscribed_topic_names: list[str] = wire(ARRAY(STRING))


class ShareGroupMetadata(Message):
    VERSIONS, FLEXIBLE_SINCE = range(1), 0

    epoch: int = wire(INT32)
    metadata_hash: int = wire(INT64)


class ShareGroupCurrentAssignment(Message):
    VERSIONS, FLEXIBLE_SINCE = range(1), 0

    member_epoch: int = wire(INT32)
    previous_member_epoch: int = wire(INT32)
    state: int = wire(INT8)
    assigned_partitions: list[TopicPartitions] = wire(ARRAY(TopicPartitions))


class ShareGroupStatePartitions(Message):
    """The partitions whose state the share coordinator holds, shall hold, and shall forget."""

    VERSIONS, FLEXIBLE_SINCE = range(1), 0

    class Initialized(Struct):
        topic_id: bytes = wire(UUID)
        topic_name: str = wire(STRING)
        partitions: list[int] = wire(ARRAY(INT32))

    class Deleting(Struct):
        topic_id: bytes = wire(UUID)
        topic_name: str = wire(STRING)

    initializing_topics: list[Initialized] = wire(ARRAY(Initialized))
    initialized_topics: list[Initialized] = wire(ARRAY(Initialized))
    deleting_topics: list[Deleting] = wire(ARRAY(Deleting))
