"""PushTelemetry: the metrics of a client, as MetricsData of OpenTelemetry (KIP-714)."""

from __future__ import annotations

from broker.protocol.wire_types import BOOL, BYTES, INT8, INT16, INT32, UUID, Message, wire


class PushTelemetryRequest(Message):
    API_KEY, VERSIONS, FLEXIBLE_SINCE = 72, range(1), 0

    client_instance_id: bytes = wire(UUID)
    subscription_id: int = wire(INT32)
    terminating: bool = wire(BOOL)
    compression_type: int = wire(INT8)
    metrics: bytes = wire(BYTES)


class PushTelemetryResponse(Message):
    API_KEY, VERSIONS, FLEXIBLE_SINCE = 72, range(1), 0

    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
