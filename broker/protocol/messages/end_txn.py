"""EndTxn: commit or abort a transaction."""

from __future__ import annotations

from broker.protocol.wire_types import BOOL, INT16, INT32, INT64, STRING, Message, wire


class EndTxnRequest(Message):
    """v2 allows PRODUCER_FENCED in answers; v4 allows TRANSACTION_ABORTABLE; v5 bumps the epoch (KIP-890)."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 26, range(6), 3

    transactional_id: str = wire(STRING)
    producer_id: int = wire(INT64)
    producer_epoch: int = wire(INT16)
    committed: bool = wire(BOOL)


class EndTxnResponse(Message):
    """v5 adds the producer id and epoch for the next transaction."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 26, range(6), 3

    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    producer_id: int = wire(INT64, default=-1, since=5)
    producer_epoch: int = wire(INT16, default=-1, since=5)
