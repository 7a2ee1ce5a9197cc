"""ConsumerGroupDescribe: groups of the consumer protocol (KIP-848), on clusters that have them."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, BOOL, INT8, INT16, INT32, STRING, UUID, Message, Struct, wire


class ConsumerGroupDescribeRequest(Message):
    API_KEY, VERSIONS, FLEXIBLE_SINCE = 69, range(2), 0

    group_ids: list[str] = wire(ARRAY(STRING))
    include_authorized_operations: bool = wire(BOOL, default=False)


class ConsumerGroupDescribeResponse(Message):
    """v1 adds the member type: 0 for a classic member, 1 for a consumer member."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 69, range(2), 0

    class TopicPartitions(Struct):
        topic_id: bytes = wire(UUID)
        topic_name: str = wire(STRING)
        partitions: list[int] = wire(ARRAY(INT32))

    class Assignment(Struct):
        topic_partitions: list[ConsumerGroupDescribeResponse.TopicPartitions] = wire(ARRAY("TopicPartitions"))

    class Member(Struct):
        member_id: str = wire(STRING)
        instance_id: str | None = wire(STRING, default=None, null_since=0)
        rack_id: str | None = wire(STRING, default=None, null_since=0)
        member_epoch: int = wire(INT32)
        client_id: str = wire(STRING)
        client_host: str = wire(STRING)
        subscribed_topic_names: list[str] = wire(ARRAY(STRING))
        subscribed_topic_regex: str | None = wire(STRING, default=None, null_since=0)
        assignment: ConsumerGroupDescribeResponse.Assignment = wire("Assignment")
        target_assignment: ConsumerGroupDescribeResponse.Assignment = wire("Assignment")
        member_type: int = wire(INT8, default=-1, since=1)

    class Group(Struct):
        error_code: int = wire(INT16, default=0)
        error_message: str | None = wire(STRING, default=None, null_since=0)
        group_id: str = wire(STRING)
        group_state: str = wire(STRING)
        group_epoch: int = wire(INT32)
        assignment_epoch: int = wire(INT32)
        assignor_name: str = wire(STRING)
        members: list[ConsumerGroupDescribeResponse.Member] = wire(ARRAY("Member"))
        authorized_operations: int = wire(INT32, default=-(2**31))

    throttle_time_ms: int = wire(INT32, default=0)
    groups: list[Group] = wire(ARRAY(Group))
