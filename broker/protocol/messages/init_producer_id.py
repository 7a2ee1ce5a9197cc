"""InitProducerId: a producer id and epoch for idempotent writes."""

from __future__ import annotations

from broker.protocol.wire_types import INT16, INT32, INT64, STRING, Message, wire


class InitProducerIdRequest(Message):
    """v3 adds the current id and epoch, to bump the epoch (KIP-360)."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 22, range(6), 2

    transactional_id: str | None = wire(STRING, null_since=0)
    transaction_timeout_ms: int = wire(INT32)
    producer_id: int = wire(INT64, default=-1, since=3)
    producer_epoch: int = wire(INT16, default=-1, since=3)


class InitProducerIdResponse(Message):
    API_KEY, VERSIONS, FLEXIBLE_SINCE = 22, range(6), 2

    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    producer_id: int = wire(INT64, default=-1)
    producer_epoch: int = wire(INT16)
