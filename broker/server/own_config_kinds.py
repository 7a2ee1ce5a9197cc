"""The resources whose configs the broker keeps itself: Kafka's number of each type, and the kind of its records in the store."""

from __future__ import annotations

BROKER, CLIENT_METRICS, GROUP = 4, 16, 32
KINDS = {BROKER: "broker_configs", CLIENT_METRICS: "client_metrics_configs", GROUP: "group_configs"}
