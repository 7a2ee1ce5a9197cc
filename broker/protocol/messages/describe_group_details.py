"""DescribeGroupDetails: what DescribeGroups omits. An extension of this broker, not part of Kafka."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, INT16, INT32, INT64, STRING, Message, Struct, wire


class DescribeGroupDetailsRequest(Message):
    API_KEY, VERSIONS, FLEXIBLE_SINCE = 10000, range(1), 0

    groups: list[str] = wire(ARRAY(STRING))


class DescribeGroupDetailsResponse(Message):
    """`state_since_ms` is wall-clock time. An age of -1 is unknown."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 10000, range(1), 0

    class Member(Struct):
        member_id: str = wire(STRING)
        group_instance_id: str | None = wire(STRING, default=None, null_since=0)
        client_id: str = wire(STRING)
        client_host: str = wire(STRING)
        session_timeout_ms: int = wire(INT32)
        rebalance_timeout_ms: int = wire(INT32)
        heartbeat_age_ms: int = wire(INT64, default=-1)
        phase: str = wire(STRING)

    class Group(Struct):
        error_code: int = wire(INT16, default=0)
        error_message: str | None = wire(STRING, default=None, null_since=0)
        group_id: str = wire(STRING)
        group_state: str = wire(STRING, default="")
        protocol_type: str = wire(STRING, default="")
        protocol: str | None = wire(STRING, default=None, null_since=0)
        generation_id: int = wire(INT32, default=-1)
        leader: str | None = wire(STRING, default=None, null_since=0)
        state_since_ms: int = wire(INT64, default=-1)
        members: list[DescribeGroupDetailsResponse.Member] = wire(ARRAY("Member"), default=[])

    throttle_time_ms: int = wire(INT32, default=0)
    groups: list[Group] = wire(ARRAY(Group))
