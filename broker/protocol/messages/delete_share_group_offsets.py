"""DeleteShareGroupOffsets: forget the offsets of topics; the group must be empty (KIP-932)."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, INT16, INT32, STRING, UUID, Message, Struct, wire


class DeleteShareGroupOffsetsRequest(Message):
    API_KEY, VERSIONS, FLEXIBLE_SINCE = 92, range(1), 0

    class Topic(Struct):
        topic_name: str = wire(STRING)

    group_id: str = wire(STRING)
    topics: list[Topic] = wire(ARRAY(Topic))


class DeleteShareGroupOffsetsResponse(Message):
    API_KEY, VERSIONS, FLEXIBLE_SINCE = 92, range(1), 0

    class Topic(Struct):
        topic_name: str = wire(STRING)
        topic_id: bytes = wire(UUID)
        error_code: int = wire(INT16, default=0)
        error_message: str | None = wire(STRING, default=None, null_since=0)

    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(STRING, default=None, null_since=0)
    responses: list[Topic] = wire(ARRAY(Topic), default=[])
