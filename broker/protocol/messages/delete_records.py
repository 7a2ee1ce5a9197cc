"""DeleteRecords: advance the log start offset of partitions."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, INT16, INT32, INT64, STRING, Message, Struct, wire


class DeleteRecordsRequest(Message):
    """Offset -1 means the high watermark."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 21, range(3), 2

    class Partition(Struct):
        partition_index: int = wire(INT32)
        offset: int = wire(INT64)

    class Topic(Struct):
        name: str = wire(STRING)
        partitions: list[DeleteRecordsRequest.Partition] = wire(ARRAY("Partition"))

    topics: list[Topic] = wire(ARRAY(Topic))
    timeout_ms: int = wire(INT32)


class DeleteRecordsResponse(Message):
    API_KEY, VERSIONS, FLEXIBLE_SINCE = 21, range(3), 2

    class Partition(Struct):
        partition_index: int = wire(INT32)
        low_watermark: int = wire(INT64)
        error_code: int = wire(INT16, default=0)

    class Topic(Struct):
        name: str = wire(STRING)
        partitions: list[DeleteRecordsResponse.Partition] = wire(ARRAY("Partition"))

    throttle_time_ms: int = wire(INT32, default=0)
    topics: list[Topic] = wire(ARRAY(Topic))
