"""DeleteGroups: delete empty groups and their offsets."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, INT16, INT32, STRING, Message, Struct, wire


class DeleteGroupsRequest(Message):
    API_KEY, VERSIONS, FLEXIBLE_SINCE = 42, range(3), 2

    groups_names: list[str] = wire(ARRAY(STRING))


class DeleteGroupsResponse(Message):
    API_KEY, VERSIONS, FLEXIBLE_SINCE = 42, range(3), 2

    class Result(Struct):
        group_id: str = wire(STRING)
        error_code: int = wire(INT16, default=0)

    throttle_time_ms: int = wire(INT32, default=0)
    results: list[Result] = wire(ARRAY(Result))
