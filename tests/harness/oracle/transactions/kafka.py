"""Real and own brokers for transactional walks, with the same settings."""

from __future__ import annotations

from tests.harness.oracle.over_socket import address_of
from tests.harness.oracle.transactions.player import Address
from tests.harness.oracle.transactions.readiness import wait_until_loaded
from tests.harness.reference_kafka import ReferenceKafka

TRANSACTION_VERSIONS = (0, 1, 2)
SETTINGS = {"group.initial.rebalance.delay.ms": "0"}
# Kafka looks for transactions that timed out at this interval; here each has its own timer.
KAFKA_ONLY = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "50",
    "offsets.retention.check.interval.ms": "86400000",
}


class TransactionalKafka(ReferenceKafka):
    """A real Kafka whose finalized transaction.version is the given one."""

    def __init__(self, transaction_version: int) -> None:
        super().__init__(SETTINGS | KAFKA_ONLY)
        self._transaction_version = transaction_version

    def __enter__(self) -> TransactionalKafka:
        super().__enter__()
        wait_until_loaded(self.address)
        return self

    @property
    def address(self) -> Address:
        return address_of(self.bootstrap_servers)

    def format_arguments(self) -> list[str]:
        return ["--feature", f"transaction.version={self._transaction_version}"]

    def restart(self) -> None:
        super().restart()
        wait_until_loaded(self.address)
