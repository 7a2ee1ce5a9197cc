"""A record to write, as commands and the sink of Spark read it."""

from __future__ import annotations

from broker.light_dataclasses import dataclass
from kgctl.client.producer.core.batch import Headers

__all__ = ["Headers", "OutgoingRecord"]


@dataclass(slots=True)
class OutgoingRecord:
    """The producer chooses `partition` and `timestamp_ms` where they are None.

    `number` identifies the record in error messages, as the caller counts its records.
    """

    value: bytes | None
    key: bytes | None = None
    headers: Headers = ()
    partition: int | None = None
    timestamp_ms: int | None = None
    number: int = 0
