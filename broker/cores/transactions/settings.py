"""The settings of the transaction coordinator, with Kafka's defaults."""

from __future__ import annotations

from broker.light_named_tuples import NamedTuple


class TransactionSettings(NamedTuple):
    """`transaction.max.timeout.ms`, `transactional.id.expiration.ms`, and how often ids are checked for expiry."""

    max_timeout_ms: int = 900_000
    expiration_ms: int = 604_800_000
    expiry_check_interval_ms: int = 3_600_000
