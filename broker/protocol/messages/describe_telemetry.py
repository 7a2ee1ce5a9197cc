"""DescribeTelemetry: the metrics that clients have pushed. An extension of this broker, not part of Kafka."""

from __future__ import annotations

from broker.protocol.wire_types import (
    ARRAY,
    BOOL,
    BYTES,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    UUID,
    Message,
    Struct,
    wire,
)


class DescribeTelemetryRequest(Message):
    """Asks for client instances with numbers above `after`, in the order in which they asked for a subscription first."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 10004, range(1), 0

    after: int = wire(INT64, default=0)


class DescribeTelemetryResponse(Message):
    """`next_after` asks for the instances that follow; -1 means that there are none. `pushed_ms` is wall-clock time; -1: never.

    `metrics` is the last push, as the client has compressed it.
    """

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 10004, range(1), 0

    class Instance(Struct):
        number: int = wire(INT64)
        client_instance_id: bytes = wire(UUID)
        connection: int = wire(INT64)
        client_id: str = wire(STRING)
        software_name: str = wire(STRING)
        software_version: str = wire(STRING)
        host: str = wire(STRING)
        port: int = wire(INT32)
        subscription_id: int = wire(INT32)
        requested_metrics: list[str] = wire(ARRAY(STRING))
        push_interval_ms: int = wire(INT32)
        pushes: int = wire(INT64)
        pushed_ms: int = wire(INT64)
        terminating: bool = wire(BOOL)
        compression_type: int = wire(INT8)
        metrics: bytes = wire(BYTES)

    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    broker_id: int = wire(INT32, default=-1)
    next_after: int = wire(INT64, default=-1)
    instances: list[Instance] = wire(ARRAY(Instance), default=[])
