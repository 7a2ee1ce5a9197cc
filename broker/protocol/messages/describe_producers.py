"""DescribeProducers: the idempotent and transactional producers that a partition remembers (KIP-664)."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, INT16, INT32, INT64, STRING, Message, Struct, wire


class DescribeProducersRequest(Message):
    API_KEY, VERSIONS, FLEXIBLE_SINCE = 61, range(1), 0

    class Topic(Struct):
        name: str = wire(STRING)
        partition_indexes: list[int] = wire(ARRAY(INT32))

    topics: list[Topic] = wire(ARRAY(Topic))


class DescribeProducersResponse(Message):
    API_KEY, VERSIONS, FLEXIBLE_SINCE = 61, range(1), 0

    class Producer(Struct):
        """`current_txn_start_offset` is -1 outside a transaction."""

        producer_id: int = wire(INT64)
        producer_epoch: int = wire(INT32)
        last_sequence: int = wire(INT32, default=-1)
        last_timestamp: int = wire(INT64, default=-1)
        coordinator_epoch: int = wire(INT32)
        current_txn_start_offset: int = wire(INT64, default=-1)

    class Partition(Struct):
        partition_index: int = wire(INT32)
        error_code: int = wire(INT16, default=0)
        error_message: str | None = wire(STRING, default=None, null_since=0)
        active_producers: list[DescribeProducersResponse.Producer] = wire(ARRAY("Producer"))

    class Topic(Struct):
        name: str = wire(STRING)
        partitions: list[DescribeProducersResponse.Partition] = wire(ARRAY("Partition"))

    throttle_time_ms: int = wire(INT32, default=0)
    topics: list[Topic] = wire(ARRAY(Topic))
