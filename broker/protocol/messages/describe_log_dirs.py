"""DescribeLogDirs: sizes of partitions on disk."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, BOOL, INT16, INT32, INT64, STRING, Message, Struct, wire


class DescribeLogDirsRequest(Message):
    """Null topics means all topics."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 35, range(1, 5), 2

    class Topic(Struct):
        topic: str = wire(STRING)
        partitions: list[int] = wire(ARRAY(INT32))

    topics: list[Topic] | None = wire(ARRAY(Topic), null_since=0)


class DescribeLogDirsResponse(Message):
    """v3 adds the error code; v4 adds size and free space of the volume (KIP-827)."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 35, range(1, 5), 2

    class Partition(Struct):
        partition_index: int = wire(INT32)
        partition_size: int = wire(INT64)
        offset_lag: int = wire(INT64)
        is_future_key: bool = wire(BOOL)

    class Topic(Struct):
        name: str = wire(STRING)
        partitions: list[DescribeLogDirsResponse.Partition] = wire(ARRAY("Partition"))

    class Result(Struct):
        error_code: int = wire(INT16, default=0)
        log_dir: str = wire(STRING)
        topics: list[DescribeLogDirsResponse.Topic] = wire(ARRAY("Topic"))
        total_bytes: int = wire(INT64, default=-1, since=4)
        usable_bytes: int = wire(INT64, default=-1, since=4)

    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0, since=3)
    results: list[Result] = wire(ARRAY(Result))
