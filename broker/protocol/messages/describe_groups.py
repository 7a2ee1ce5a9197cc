"""DescribeGroups: state and members of groups."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, BOOL, BYTES, INT16, INT32, STRING, Message, Struct, wire


class DescribeGroupsRequest(Message):
    """v3 can ask for authorized operations (KIP-430); v6 reports GROUP_ID_NOT_FOUND for a missing group (KIP-1043)."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 15, range(7), 5

    groups: list[str] = wire(ARRAY(STRING))
    include_authorized_operations: bool = wire(BOOL, default=False, since=3)


class DescribeGroupsResponse(Message):
    """v1 adds the throttle time; v3 adds authorized operations; v4 adds instance ids; v6 adds the error message."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 15, range(7), 5

    class Member(Struct):
        member_id: str = wire(STRING)
        group_instance_id: str | None = wire(STRING, default=None, since=4, null_since=4)
        client_id: str = wire(STRING)
        client_host: str = wire(STRING)
        member_metadata: bytes = wire(BYTES)
        member_assignment: bytes = wire(BYTES)

    class Group(Struct):
        error_code: int = wire(INT16, default=0)
        error_message: str | None = wire(STRING, default=None, since=6, null_since=6)
        group_id: str = wire(STRING)
        group_state: str = wire(STRING)
        protocol_type: str = wire(STRING)
        protocol_data: str = wire(STRING)
        members: list[DescribeGroupsResponse.Member] = wire(ARRAY("Member"))
        authorized_operations: int = wire(INT32, default=-(2**31), since=3)

    throttle_time_ms: int = wire(INT32, default=0, since=1)
    groups: list[Group] = wire(ARRAY(Group))
