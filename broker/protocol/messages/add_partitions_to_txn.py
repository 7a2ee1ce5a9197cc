"""AddPartitionsToTxn: add partitions to a transaction, or verify that they are part of it."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, BOOL, INT16, INT32, INT64, STRING, Message, Struct, wire


class AddPartitionsToTxnRequest(Message):
    """v2 allows PRODUCER_FENCED in answers; v4, which only brokers send, takes several transactions and may only verify
    (KIP-890); v5 allows TRANSACTION_ABORTABLE.
    """

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 24, range(6), 3

    class Topic(Struct):
        name: str = wire(STRING)
        partitions: list[int] = wire(ARRAY(INT32))

    class Transaction(Struct):
        transactional_id: str = wire(STRING)
        producer_id: int = wire(INT64)
        producer_epoch: int = wire(INT16)
        verify_only: bool = wire(BOOL, default=False)
        topics: list[AddPartitionsToTxnRequest.Topic] = wire(ARRAY("Topic"))

    transactions: list[Transaction] = wire(ARRAY(Transaction), default=[], since=4)
    v3_and_below_transactional_id: str = wire(STRING, default="", until=3)
    v3_and_below_producer_id: int = wire(INT64, default=0, until=3)
    v3_and_below_producer_epoch: int = wire(INT16, default=0, until=3)
    v3_and_below_topics: list[Topic] = wire(ARRAY(Topic), default=[], until=3)


class AddPartitionsToTxnResponse(Message):
    """v4 answers each transaction, and adds the error code."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 24, range(6), 3

    class Partition(Struct):
        partition_index: int = wire(INT32)
        partition_error_code: int = wire(INT16, default=0)

    class Topic(Struct):
        name: str = wire(STRING)
        results_by_partition: list[AddPartitionsToTxnResponse.Partition] = wire(ARRAY("Partition"))

    class Transaction(Struct):
        transactional_id: str = wire(STRING)
        topic_results: list[AddPartitionsToTxnResponse.Topic] = wire(ARRAY("Topic"))

    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0, since=4)
    results_by_transaction: list[Transaction] = wire(ARRAY(Transaction), default=[], since=4)
    results_by_topic_v3_and_below: list[Topic] = wire(ARRAY(Topic), default=[], until=3)
