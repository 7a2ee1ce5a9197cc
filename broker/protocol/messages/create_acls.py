"""CreateAcls: add ACLs."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, INT8, INT16, INT32, STRING, Message, Struct, wire


class CreateAclsRequest(Message):
    """v3 adds users as resources (KIP-373)."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 30, range(1, 4), 2

    class Creation(Struct):
        resource_type: int = wire(INT8)
        resource_name: str = wire(STRING)
        resource_pattern_type: int = wire(INT8, default=3)
        principal: str = wire(STRING)
        host: str = wire(STRING)
        operation: int = wire(INT8)
        permission_type: int = wire(INT8)

    creations: list[Creation] = wire(ARRAY(Creation))


class CreateAclsResponse(Message):
    """One result for each entry of the request, in its order."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 30, range(1, 4), 2

    class Result(Struct):
        error_code: int = wire(INT16, default=0)
        error_message: str | None = wire(STRING, default=None, null_since=0)

    throttle_time_ms: int = wire(INT32, default=0)
    results: list[Result] = wire(ARRAY(Result))
