"""ShareGroupDescribe: share groups (KIP-932), on clusters that have them."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, BOOL, INT16, INT32, STRING, UUID, Message, Struct, wire


class ShareGroupDescribeRequest(Message):
    API_KEY, VERSIONS, FLEXIBLE_SINCE = 77, range(1, 2), 0

    group_ids: list[str] = wire(ARRAY(STRING))
    include_authorized_operations: bool = wire(BOOL, default=False)


class ShareGroupDescribeResponse(Message):
    API_KEY, VERSIONS, FLEXIBLE_SINCE = 77, range(1, 2), 0

    class TopicPartitions(Struct):
        topic_id: bytes = wire(UUID)
        topic_name: str = wire(STRING)
        partitions: list[int] = wire(ARRAY(INT32))

    class Assignment(Struct):
        topic_partitions: list[ShareGroupDescribeResponse.TopicPartitions] = wire(ARRAY("TopicPartitions"))

    class Member(Struct):
        member_id: str = wire(STRING)
        rack_id: str | None = wire(STRING, default=None, null_since=0)
        member_epoch: int = wire(INT32)
        client_id: str = wire(STRING)
        client_host: str = wire(STRING)
        subscribed_topic_names: list[str] = wire(ARRAY(STRING))
        assignment: ShareGroupDescribeResponse.Assignment = wire("Assignment")

    class Group(Struct):
        error_code: int = wire(INT16, default=0)
        error_message: str | None = wire(STRING, default=None, null_since=0)
        group_id: str = wire(STRING)
        group_state: str = wire(STRING)
        group_epoch: int = wire(INT32)
        assignment_epoch: int = wire(INT32)
        assignor_name: str = wire(STRING)
        members: list[ShareGroupDescribeResponse.Member] = wire(ARRAY("Member"))
        authorized_operations: int = wire(INT32, default=-(2**31))

    throttle_time_ms: int = wire(INT32, default=0)
    groups: list[Group] = wire(ARRAY(Group))
