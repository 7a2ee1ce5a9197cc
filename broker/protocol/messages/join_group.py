"""JoinGroup: enter a group, or come back in a rebalance."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, BOOL, BYTES, INT16, INT32, STRING, Message, Struct, wire


class JoinGroupRequest(Message):
    """v1 rebalance timeout; v4 a second join with the id from MEMBER_ID_REQUIRED (KIP-394); v5 instance id
    (KIP-345); v8 reason (KIP-800).

    Version 0 has no rebalance timeout: the session timeout stands in for -1.
    """

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 11, range(10), 6

    class Protocol(Struct):
        name: str = wire(STRING)
        metadata: bytes = wire(BYTES)

    group_id: str = wire(STRING)
    session_timeout_ms: int = wire(INT32)
    rebalance_timeout_ms: int = wire(INT32, default=-1, since=1)
    member_id: str = wire(STRING)
    group_instance_id: str | None = wire(STRING, default=None, since=5, null_since=5)
    protocol_type: str = wire(STRING)
    protocols: list[Protocol] = wire(ARRAY(Protocol))
    reason: str | None = wire(STRING, default=None, since=8, null_since=8)


class JoinGroupResponse(Message):
    """v2 throttle time; v5 instance ids of the members; v7 protocol type, and null for a missing protocol (KIP-559);
    v9 skip_assignment (KIP-814).

    Only the leader gets the members. Before v7 a missing protocol is an empty string.
    """

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 11, range(10), 6

    class Member(Struct):
        member_id: str = wire(STRING)
        group_instance_id: str | None = wire(STRING, default=None, since=5, null_since=5)
        metadata: bytes = wire(BYTES)

    throttle_time_ms: int = wire(INT32, default=0, since=2)
    error_code: int = wire(INT16, default=0)
    generation_id: int = wire(INT32, default=-1)
    protocol_type: str | None = wire(STRING, default=None, since=7, null_since=7)
    protocol_name: str | None = wire(STRING, null_since=7)
    leader: str = wire(STRING)
    skip_assignment: bool = wire(BOOL, default=False, since=9)
    member_id: str = wire(STRING)
    members: list[Member] = wire(ARRAY(Member))
