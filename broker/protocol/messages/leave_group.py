"""LeaveGroup: members leave, or an admin removes them."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, INT16, INT32, STRING, Message, Struct, wire


class LeaveGroupRequest(Message):
    """v3 takes several members, each by member id or instance id (KIP-345); v5 adds a reason for each (KIP-800)."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 13, range(6), 4

    class Member(Struct):
        member_id: str = wire(STRING)
        group_instance_id: str | None = wire(STRING, default=None, null_since=0)
        reason: str | None = wire(STRING, default=None, since=5, null_since=5)

    group_id: str = wire(STRING)
    member_id: str = wire(STRING, default="", until=2)
    members: list[Member] = wire(ARRAY(Member), default=[], since=3)


class LeaveGroupResponse(Message):
    """v1 adds the throttle time; v3 adds an error code for each member."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 13, range(6), 4

    class Member(Struct):
        member_id: str = wire(STRING)
        group_instance_id: str | None = wire(STRING, null_since=0)
        error_code: int = wire(INT16, default=0)

    throttle_time_ms: int = wire(INT32, default=0, since=1)
    error_code: int = wire(INT16, default=0)
    members: list[Member] = wire(ARRAY(Member), default=[], since=3)
