"""One row per group: what a listing and a summary show."""

from __future__ import annotations

from broker.light_dataclasses import dataclass
from kgctl.model.failure import RowError


@dataclass(frozen=True, slots=True)
class GroupOverview:
    """Unknown values are None. Times are ms since 1970, `*_age_ms` and `eta_ms` durations, rates records/s.

    `verdict` is a word of model.health; None if there is no evidence for one. `worst_partition` is the partition with the
    largest lag, such as orders-0. `uncommitted_records` are the records of partitions that members own and that have no
    committed offset, from the start of the log; `lag` does not count them.
    """

    group: str
    type: str | None = None
    state: str | None = None
    members: int | None = None
    lag: int | None = None
    uncommitted_records: int | None = None
    last_commit_ms: int | None = None
    last_commit_age_ms: int | None = None
    verdict: str | None = None
    verdict_reason: str | None = None
    protocol: str | None = None
    assignor: str | None = None
    generation: int | None = None
    state_since_ms: int | None = None
    coordinator: str | None = None
    coordinator_id: int | None = None
    offsets_partition: int | None = None
    topics: int | None = None
    partitions: int | None = None
    worst_partition: str | None = None
    worst_lag: int | None = None
    rate_in: float | None = None
    rate_out: float | None = None
    time_lag_ms: int | None = None
    eta_ms: int | None = None
    error: RowError | None = None
