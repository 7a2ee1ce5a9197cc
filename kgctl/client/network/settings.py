"""The settings of a NetworkClient; the names are those of Kafka's options."""

from __future__ import annotations

from broker.light_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """Times in milliseconds; the defaults are Kafka's. `read_only`: requests that change something are not sent."""

    client_id: str = "kgctl"
    request_timeout_ms: int = 30_000
    reconnect_backoff_ms: int = 50
    reconnect_backoff_max_ms: int = 1_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    socket_connection_setup_timeout_ms: int = 10_000
    socket_connection_setup_timeout_max_ms: int = 30_000
    connections_max_idle_ms: int = 540_000
    max_in_flight_requests_per_connection: int = 100
    metadata_max_age_ms: int = 300_000
    metadata_max_idle_ms: int = 300_000
    metadata_recovery_strategy: str = "rebootstrap"
    metadata_recovery_rebootstrap_trigger_ms: int = 300_000
    allow_auto_create_topics: bool = True
    software_name: str = "kgctl"
    software_version: str = "0.1"
    read_only: bool = False
