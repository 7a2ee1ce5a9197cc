"""ListTransactions: the transactional ids of a coordinator, with filters (KIP-664)."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, INT16, INT32, INT64, STRING, Message, Struct, wire


class ListTransactionsRequest(Message):
    """v1 adds the filter by duration in ms (KIP-994); v2 adds the pattern of transactional ids (KIP-1152)."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 66, range(3), 0

    state_filters: list[str] = wire(ARRAY(STRING))
    producer_id_filters: list[int] = wire(ARRAY(INT64))
    duration_filter: int = wire(INT64, default=-1, since=1)
    transactional_id_pattern: str | None = wire(STRING, default=None, since=2, null_since=2)


class ListTransactionsResponse(Message):
    API_KEY, VERSIONS, FLEXIBLE_SINCE = 66, range(3), 0

    class Transaction(Struct):
        transactional_id: str = wire(STRING)
        producer_id: int = wire(INT64)
        transaction_state: str = wire(STRING)

    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    unknown_state_filters: list[str] = wire(ARRAY(STRING), default=[])
    transaction_states: list[Transaction] = wire(ARRAY(Transaction), default=[])
