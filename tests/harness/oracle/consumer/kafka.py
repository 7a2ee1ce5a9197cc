"""The kinds of walks, and real Kafkas for them."""

from __future__ import annotations

from tests.harness.oracle.consumer.generate import SHORT_SESSION_MS
from tests.harness.oracle.over_socket import Address, address_of
from tests.harness.oracle.transactions.readiness import wait_until_loaded
from tests.harness.reference_kafka import ReferenceKafka

TRANSACTIONAL, RESTARTS = "transactional", "restarts"
_COMMON = {"group.initial.rebalance.delay.ms": "0", "group.consumer.session.timeout.ms": "60000"}
_DISABLED = _COMMON | {"group.consumer.migration.policy": "disabled"}
_LIVE = {"group.consumer.migration.policy": "bidirectional"}
SETTINGS: dict[str, dict[str, str]] = {
    "consumer": _DISABLED,
    "large": _DISABLED,
    "max-size": _DISABLED | {"group.consumer.max.size": "2"},
    "migration": _COMMON | _LIVE,
    TRANSACTIONAL: _COMMON | _LIVE,
    RESTARTS: _COMMON | _LIVE,
    "timed": _COMMON
    | _LIVE
    | {
        "group.consumer.session.timeout.ms": str(SHORT_SESSION_MS),
        "group.consumer.min.session.timeout.ms": str(SHORT_SESSION_MS),
        "group.consumer.min.heartbeat.interval.ms": "1000",
        "group.consumer.heartbeat.interval.ms": "1000",
        "group.min.session.timeout.ms": str(SHORT_SESSION_MS),
    },
}
SETTINGS["scenarios"] = SETTINGS["timed"]
# Kafka's check would remove Empty groups without offsets at any time.
KAFKA_ONLY = {"offsets.retention.check.interval.ms": "86400000"}
# How long its coordinator may take to hear of a topic that the broker shows already.
SETTLE_S = 0.1


class KafkaOfKind(ReferenceKafka):
    """A real Kafka with the settings of a kind of walks."""

    def __init__(self, kind: str) -> None:
        super().__init__(SETTINGS[kind] | KAFKA_ONLY)
        self._kind = kind

    def __enter__(self) -> KafkaOfKind:
        super().__enter__()
        if self._kind == TRANSACTIONAL:
            wait_until_loaded(self.address)
        return self

    @property
    def address(self) -> Address:
        return address_of(self.bootstrap_servers)
