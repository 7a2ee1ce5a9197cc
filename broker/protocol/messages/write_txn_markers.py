"""WriteTxnMarkers: append the markers that end transactions. Coordinators and administrators send it."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, BOOL, INT16, INT32, INT64, STRING, Message, Struct, wire


class WriteTxnMarkersRequest(Message):
    API_KEY, VERSIONS, FLEXIBLE_SINCE = 27, range(1, 2), 1

    class Topic(Struct):
        name: str = wire(STRING)
        partition_indexes: list[int] = wire(ARRAY(INT32))

    class Marker(Struct):
        """`transaction_result` is true for a commit."""

        producer_id: int = wire(INT64)
        producer_epoch: int = wire(INT16)
        transaction_result: bool = wire(BOOL)
        topics: list[WriteTxnMarkersRequest.Topic] = wire(ARRAY("Topic"))
        coordinator_epoch: int = wire(INT32)

    markers: list[Marker] = wire(ARRAY(Marker))


class WriteTxnMarkersResponse(Message):
    API_KEY, VERSIONS, FLEXIBLE_SINCE = 27, range(1, 2), 1

    class Partition(Struct):
        partition_index: int = wire(INT32)
        error_code: int = wire(INT16, default=0)

    class Topic(Struct):
        name: str = wire(STRING)
        partitions: list[WriteTxnMarkersResponse.Partition] = wire(ARRAY("Partition"))

    class Marker(Struct):
        producer_id: int = wire(INT64)
        topics: list[WriteTxnMarkersResponse.Topic] = wire(ARRAY("Topic"))

    markers: list[Marker] = wire(ARRAY(Marker))
