"""Rows of `kgctl bench`."""

from __future__ import annotations

from broker.light_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BenchRecords:
    """Records that were produced or consumed. `megabytes_s` counts keys and values, uncompressed, in units of 10^6 bytes.

    Latencies in milliseconds: of produce, from the send to the acknowledgement; of consume with a rate, from the send to
    the consumer. `cpu_s_per_million` is the CPU time of this process in seconds per million records. `is_complete` is false
    if a signal ended the run.
    """

    topic: str
    action: str
    records: int
    record_bytes: int | None
    partitions: int
    compression: str | None
    acks: str | None
    transactions: int | None
    seconds: float
    records_s: float
    megabytes_s: float
    cpu_s_per_million: float | None
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    max_ms: float | None
    is_complete: bool


@dataclass(frozen=True, slots=True)
class BenchMembers:
    """A group of `members`. `stable_s` is the time from the start until all members had their partitions, None if they never had.

    `rebalance_*` are seconds from the leave of a member, which joins again, until all members have their partitions;
    `heartbeat_*` milliseconds from a heartbeat to its answer. `cpu_s` is the CPU time of this process.
    """

    group: str
    topic: str
    members: int
    partitions: int
    group_protocol: str
    assignor: str
    stable_s: float | None
    generations: int
    rebalances: int
    rebalance_p50_s: float | None
    rebalance_p95_s: float | None
    rebalance_p99_s: float | None
    rebalance_max_s: float | None
    heartbeats: int
    heartbeats_failed: int
    heartbeat_p50_ms: float | None
    heartbeat_p95_ms: float | None
    heartbeat_p99_ms: float | None
    heartbeat_max_ms: float | None
    seconds: float
    cpu_s: float
    is_complete: bool
