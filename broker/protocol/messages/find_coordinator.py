"""FindCoordinator: which broker coordinates a group or a transactional id."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, INT8, INT16, INT32, STRING, Message, Struct, wire


class FindCoordinatorRequest(Message):
    """v1 adds the key type; v4 takes several keys (KIP-699); v6 adds share groups (KIP-932)."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 10, range(7), 3

    key: str = wire(STRING, default="", until=3)
    key_type: int = wire(INT8, default=0, since=1)
    coordinator_keys: list[str] = wire(ARRAY(STRING), default=[], since=4)


class FindCoordinatorResponse(Message):
    """v1 adds throttle time and error message; v4 answers each key separately."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 10, range(7), 3

    class Coordinator(Struct):
        key: str = wire(STRING)
        node_id: int = wire(INT32)
        host: str = wire(STRING)
        port: int = wire(INT32)
        error_code: int = wire(INT16, default=0)
        error_message: str | None = wire(STRING, default=None, null_since=0)

    throttle_time_ms: int = wire(INT32, default=0, since=1)
    error_code: int = wire(INT16, default=0, until=3)
    error_message: str | None = wire(STRING, default=None, since=1, until=3, null_since=1)
    node_id: int = wire(INT32, default=0, until=3)
    host: str = wire(STRING, default="", until=3)
    port: int = wire(INT32, default=0, until=3)
    coordinators: list[Coordinator] = wire(ARRAY(Coordinator), default=[], since=4)
