"""Rows about topics, their partitions and settings."""

from __future__ import annotations

from broker.light_dataclasses import dataclass
from kgctl.model.failure import RowError


@dataclass(frozen=True, slots=True)
class TopicRow:
    topic: str
    partitions: int
    replicas: int
    internal: bool
    error: RowError | None = None


@dataclass(frozen=True, slots=True)
class TopicPartitionRow:
    """None: no leader, or unknown offsets. `records` counts offsets, including those of compacted and control records."""

    topic: str
    partition: int | None
    leader: int | None = None
    leader_epoch: int | None = None
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    log_start_offset: int | None = None
    log_end_offset: int | None = None
    records: int | None = None
    error: RowError | None = None


@dataclass(frozen=True, slots=True)
class TopicConfigRow:
    topic: str
    config: str
    value: str | None
    source: str
    error: RowError | None = None
