"""GetTelemetrySubscriptions: which of its metrics a client should send, and how often (KIP-714)."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, BOOL, INT8, INT16, INT32, STRING, UUID, ZERO_UUID, Message, wire


class GetTelemetrySubscriptionsRequest(Message):
    API_KEY, VERSIONS, FLEXIBLE_SINCE = 71, range(1), 0

    client_instance_id: bytes = wire(UUID)


class GetTelemetrySubscriptionsResponse(Message):
    API_KEY, VERSIONS, FLEXIBLE_SINCE = 71, range(1), 0

    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    client_instance_id: bytes = wire(UUID, default=ZERO_UUID)
    subscription_id: int = wire(INT32, default=0)
    accepted_compression_types: list[int] = wire(ARRAY(INT8), default=[])
    push_interval_ms: int = wire(INT32, default=0)
    telemetry_max_bytes: int = wire(INT32, default=0)
    delta_temporality: bool = wire(BOOL, default=False)
    requested_metrics: list[str] = wire(ARRAY(STRING), default=[])
