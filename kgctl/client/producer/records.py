"""A record to write, as commands and the sink of Spark read it."""

from __future__ import annotations

from typing import TypeAlias

from broker.light_dataclasses import dataclass
from kgctl.client.producer.core.batch import Headers

__all__ = ["ArchivedRecord", "Headers", "OutgoingRecord"]

# Timestamp in ms (None: now), key, value, headers, and a number for error messages.
ArchivedRecord: TypeAlias = "tuple[int | None, bytes | None, bytes | None, Headers, int]"


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
