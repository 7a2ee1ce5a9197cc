"""DeleteTopics: delete topics and their records."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, INT16, INT32, STRING, UUID, ZERO_UUID, Message, Struct, wire


class DeleteTopicsRequest(Message):
    """v6 identifies topics by name or by id (KIP-516)."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 20, range(1, 7), 4

    class Topic(Struct):
        name: str | None = wire(STRING, default=None, null_since=0)
        topic_id: bytes = wire(UUID, default=ZERO_UUID)

    topics: list[Topic] = wire(ARRAY(Topic), default=[], since=6)
    topic_names: list[str] = wire(ARRAY(STRING), default=[], until=5)
    timeout_ms: int = wire(INT32)


class DeleteTopicsResponse(Message):
    """v5 adds the error message; v6 adds the topic id."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 20, range(1, 7), 4

    class Response(Struct):
        name: str | None = wire(STRING, null_since=6)
        topic_id: bytes = wire(UUID, default=ZERO_UUID, since=6)
        error_code: int = wire(INT16, default=0)
        error_message: str | None = wire(STRING, default=None, since=5, null_since=5)

    throttle_time_ms: int = wire(INT32, default=0)
    responses: list[Response] = wire(ARRAY(Response))
