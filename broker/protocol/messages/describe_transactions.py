"""DescribeTransactions: the state of transactional ids (KIP-664)."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, INT16, INT32, INT64, STRING, Message, Struct, wire


class DescribeTransactionsRequest(Message):
    API_KEY, VERSIONS, FLEXIBLE_SINCE = 65, range(1), 0

    transactional_ids: list[str] = wire(ARRAY(STRING))


class DescribeTransactionsResponse(Message):
    API_KEY, VERSIONS, FLEXIBLE_SINCE = 65, range(1), 0

    class Topic(Struct):
        topic: str = wire(STRING)
        partitions: list[int] = wire(ARRAY(INT32))

    class Transaction(Struct):
        error_code: int = wire(INT16, default=0)
        transactional_id: str = wire(STRING)
        transaction_state: str = wire(STRING)
        transaction_timeout_ms: int = wire(INT32)
        transaction_start_time_ms: int = wire(INT64)
        producer_id: int = wire(INT64)
        producer_epoch: int = wire(INT16)
        topics: list[DescribeTransactionsResponse.Topic] = wire(ARRAY("Topic"))

    throttle_time_ms: int = wire(INT32, default=0)
    transaction_states: list[Transaction] = wire(ARRAY(Transaction))
