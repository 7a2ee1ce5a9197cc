"""Rows about the lag of groups in records and in time, and the facts that they come from."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeAlias

from broker.light_dataclasses import dataclass, field
from kgctl.model.failure import RowError
from kgctl.model.topic_partition import TopicPartition

Position: TypeAlias = "tuple[str, int, int]"
"""Topic, partition, offset."""


class Confidence(StrEnum):
    """How sure a value is."""

    HIGH = "high"
    """Read from the cluster, or measured for at least 30 s."""
    MEDIUM = "medium"
    """Measured for a shorter time, or from timestamps that producers set."""
    LOW = "low"
    """An estimate from averages, or from a single commit."""


WORST_LAST = (Confidence.HIGH, Confidence.MEDIUM, Confidence.LOW)


@dataclass(frozen=True, slots=True)
class Retention:
    """When a topic deletes records: by age in ms, by size in bytes; None: never. `is_append_time`: brokers set timestamps."""

    age_ms: int | None = None
    size_bytes: int | None = None
    is_append_time: bool = False


@dataclass(frozen=True, slots=True)
class LagFacts:
    """What the partitions of groups show beside their offsets, at `wall_ms` (ms since 1970). What is not known is absent.

    `record_times` has the timestamp of the first record at or after a position, `newest` the latest timestamp in a log.
    `missing` names kinds of facts that could not be read, each with the reason.
    """

    wall_ms: int
    log_starts: Mapping[TopicPartition, int] = field(default_factory=dict)
    record_times: Mapping[Position, int] = field(default_factory=dict)
    newest: Mapping[TopicPartition, int] = field(default_factory=dict)
    retention: Mapping[str, Retention] = field(default_factory=dict)
    log_bytes: Mapping[TopicPartition, int] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LagRow:
    """How far a group is behind in one partition, or with `partition` None in several.

    Rates are in records/s. `time_lag_ms` is the age of the oldest unread record, `span_ms` the time between it and the newest
    record of the log. `eta_s` is when the lag is zero at these rates. `headroom_ms` is when the oldest unread record may be
    deleted, at the earliest. A value that is not known is None. `confidence` says how sure each known value is.
    """

    group: str
    topic: str | None = None
    partition: int | None = None
    consumer_id: str | None = None
    client_id: str | None = None
    partitions: int = 1
    committed: int | None = None
    log_start: int | None = None
    log_end: int | None = None
    lag: int | None = None
    rate_in: float | None = None
    rate_out: float | None = None
    time_lag_ms: int | None = None
    span_ms: int | None = None
    eta_s: float | None = None
    headroom_ms: int | None = None
    confidence: Mapping[str, Confidence] = field(default_factory=dict)
    note: str | None = None
    error: RowError | None = None
