"""Kafka's options of fetching; the names are those of the options, times in milliseconds."""

from __future__ import annotations

from broker.light_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FetchOptions:
    """`committed_only` is isolation.level=read_committed, `rack` client.rack, `max_partition_bytes` max.partition.fetch.bytes."""

    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 52_428_800
    max_partition_bytes: int = 1_048_576
    max_poll_records: int = 500
    committed_only: bool = False
    check_crcs: bool = True
    rack: str = ""
    request_timeout_ms: int = 30_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    metadata_max_age_ms: int = 300_000
