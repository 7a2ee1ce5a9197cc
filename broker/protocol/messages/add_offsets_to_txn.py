"""AddOffsetsToTxn: add the committed offsets of a group to a transaction."""

from __future__ import annotations

from broker.protocol.wire_types import INT16, INT32, INT64, STRING, Message, wire


class AddOffsetsToTxnRequest(Message):
    """v2 allows PRODUCER_FENCED in answers; v4 allows TRANSACTION_ABORTABLE (KIP-890)."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 25, range(5), 3

    transactional_id: str = wire(STRING)
    producer_id: int = wire(INT64)
    producer_epoch: int = wire(INT16)
    group_id: str = wire(STRING)


class AddOffsetsToTxnResponse(Message):
    API_KEY, VERSIONS, FLEXIBLE_SINCE = 25, range(5), 3

    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
