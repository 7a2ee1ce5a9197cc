"""SyncGroup: the leader sends all assignments, and each member receives its own."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, BYTES, INT16, INT32, STRING, Message, Struct, wire


class SyncGroupRequest(Message):
    """v3 adds the instance id (KIP-345); v5 adds protocol type and name, which must match those of the group (KIP-559)."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 14, range(6), 4

    class Assignment(Struct):
        member_id: str = wire(STRING)
        assignment: bytes = wire(BYTES)

    group_id: str = wire(STRING)
    generation_id: int = wire(INT32)
    member_id: str = wire(STRING)
    group_instance_id: str | None = wire(STRING, default=None, since=3, null_since=3)
    protocol_type: str | None = wire(STRING, default=None, since=5, null_since=5)
    protocol_name: str | None = wire(STRING, default=None, since=5, null_since=5)
    assignments: list[Assignment] = wire(ARRAY(Assignment))


class SyncGroupResponse(Message):
    """v1 adds the throttle time; v5 adds protocol type and name."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 14, range(6), 4

    throttle_time_ms: int = wire(INT32, default=0, since=1)
    error_code: int = wire(INT16, default=0)
    protocol_type: str | None = wire(STRING, default=None, since=5, null_since=5)
    protocol_name: str | None = wire(STRING, default=None, since=5, null_since=5)
    assignment: bytes = wire(BYTES)
