"""DescribeBroker: what the broker counts about itself. An extension of this broker, not part of Kafka."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, INT8, INT16, INT32, INT64, STRING, Message, Struct, wire


class DescribeBrokerRequest(Message):
    API_KEY, VERSIONS, FLEXIBLE_SINCE = 10002, range(1), 0


class DescribeBrokerResponse(Message):
    """Times are wall-clock time. `times` counts since the start: requests by API key, and flushes under FLUSH_KEY.

    The time of a request runs until its answer is durable and handed to the connection, so it includes the wait of a Fetch or a
    JoinGroup. `latency_buckets.limits` says which microseconds a bucket stands for; buckets without a count are left out.
    """

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 10002, range(1), 0
    FLUSH_KEY = -2

    class Times(Struct):
        """The two arrays go together."""

        api_key: int = wire(INT16)
        buckets: list[int] = wire(ARRAY(INT8))
        counts: list[int] = wire(ARRAY(INT64))

    class Listener(Struct):
        name: str = wire(STRING)
        connections: int = wire(INT32)

    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    broker_id: int = wire(INT32, default=-1)
    wall_ms: int = wire(INT64, default=-1)
    started_ms: int = wire(INT64, default=-1)
    durability: str = wire(STRING, default="")
    store_bytes: int = wire(INT64, default=-1)
    wal_bytes: int = wire(INT64, default=-1)
    max_connections: int = wire(INT32, default=-1)
    listeners: list[Listener] = wire(ARRAY(Listener), default=[])
    times: list[Times] = wire(ARRAY(Times), default=[])
