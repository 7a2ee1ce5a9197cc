"""DescribeClients: the connections of the broker and who is behind them. An extension of this broker, not part of Kafka."""

from __future__ import annotations

from broker.protocol.wire_types import (
    ARRAY,
    INT16,
    INT32,
    INT64,
    STRING,
    UUID,
    ZERO_UUID,
    Message,
    Struct,
    wire,
)


class DescribeClientsRequest(Message):
    """Asks for up to `limit` connections with numbers above `after`, in the order in which they were made."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 10003, range(1), 0

    after: int = wire(INT64, default=0)
    limit: int = wire(INT32, default=500)


class DescribeClientsResponse(Message):
    """`next_after` asks for the connections that follow; -1 means that there are none.

    Times are wall-clock time. `last_api_key` is -1 before the first request. `client_instance_id` is that of telemetry (KIP-714).
    """

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 10003, range(1), 0

    class Client(Struct):
        number: int = wire(INT64)
        host: str = wire(STRING)
        port: int = wire(INT32)
        listener: str = wire(STRING)
        security_protocol: str = wire(STRING)
        principal: str = wire(STRING)
        client_id: str | None = wire(STRING, null_since=0)
        software_name: str = wire(STRING)
        software_version: str = wire(STRING)
        client_instance_id: bytes = wire(UUID, default=ZERO_UUID)
        since_ms: int = wire(INT64)
        active_ms: int = wire(INT64)
        requests: int = wire(INT64)
        bytes_in: int = wire(INT64)
        bytes_out: int = wire(INT64)
        last_api_key: int = wire(INT16)
        groups: list[str] = wire(ARRAY(STRING))
        transactional_ids: list[str] = wire(ARRAY(STRING))

    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    broker_id: int = wire(INT32, default=-1)
    wall_ms: int = wire(INT64, default=-1)
    next_after: int = wire(INT64, default=-1)
    clients: list[Client] = wire(ARRAY(Client), default=[])
