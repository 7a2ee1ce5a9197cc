"""JoinGroup: join a group, or rejoin it in a rebalance."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, BOOL, BYTES, INT16, INT32, STRING, Message, Struct, wire


class JoinGroupRequest(Message):
    """v1 adds the rebalance timeout; v4 joins again with the id from MEMBER_ID_REQUIRED (KIP-394); v5 adds the instance
    id (KIP-345); v8 adds the reason (KIP-800).

    In v0 the rebalance timeout is -1: the session timeout applies instead.
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
    """v2 adds the throttle time; v5 adds the instance ids of members; v7 adds the protocol type and allows a null
    protocol name (KIP-559), which is an empty string before; v9 adds skip_assignment (KIP-814).

    Only the leader receives the members.
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
