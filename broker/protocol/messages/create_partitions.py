"""CreatePartitions: add partitions to topics."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, BOOL, INT16, INT32, STRING, Message, Struct, wire


class CreatePartitionsRequest(Message):
    """`count` is the new total."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 37, range(4), 2

    class Assignment(Struct):
        broker_ids: list[int] = wire(ARRAY(INT32))

    class Topic(Struct):
        name: str = wire(STRING)
        count: int = wire(INT32)
        assignments: list[CreatePartitionsRequest.Assignment] | None = wire(
            ARRAY("Assignment"), default=None, null_since=0
        )

    topics: list[Topic] = wire(ARRAY(Topic))
    timeout_ms: int = wire(INT32)
    validate_only: bool = wire(BOOL, default=False)


class CreatePartitionsResponse(Message):
    API_KEY, VERSIONS, FLEXIBLE_SINCE = 37, range(4), 2

    class Result(Struct):
        name: str = wire(STRING)
        error_code: int = wire(INT16, default=0)
        error_message: str | None = wire(STRING, default=None, null_since=0)

    throttle_time_ms: int = wire(INT32, default=0)
    results: list[Result] = wire(ARRAY(Result))
