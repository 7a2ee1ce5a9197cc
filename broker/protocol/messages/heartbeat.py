"""Heartbeat: extend the session of a member, and report a rebalance to it."""

from __future__ import annotations

from broker.protocol.wire_types import INT16, INT32, STRING, Message, wire


class HeartbeatRequest(Message):
    """v3 adds the instance id (KIP-345)."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 12, range(5), 4

    group_id: str = wire(STRING)
    generation_id: int = wire(INT32)
    member_id: str = wire(STRING)
    group_instance_id: str | None = wire(STRING, default=None, since=3, null_since=3)


class HeartbeatResponse(Message):
    """v1 adds the throttle time."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 12, range(5), 4

    throttle_time_ms: int = wire(INT32, default=0, since=1)
    error_code: int = wire(INT16, default=0)
