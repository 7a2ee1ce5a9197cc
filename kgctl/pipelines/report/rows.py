"""The aggregated values that the report shows. Times in ms since 1970; None means not known."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class LagMap:
    """`lag[group][bin]` is the greatest sum over the group's partitions within the bin; `edges_ms` has one more than bins."""

    groups: tuple[str, ...]
    edges_ms: tuple[int, ...]
    lag: tuple[tuple[int | None, ...], ...]
    more_groups: int


@dataclass(frozen=True, slots=True)
class GroupNow:
    """A group at its last known point in time. `grows` counts the partitions whose lag does not shrink."""

    group: str
    at_ms: int
    partitions: int
    behind: int
    lag: int | None
    lag_ms: int | None
    consume_rate: float | None
    produce_rate: float | None
    eta_s: float | None
    grows: int


@dataclass(frozen=True, slots=True)
class PartitionHealth:
    """A partition of a group at the last evaluation; `lag_ms` is from f_lag."""

    group: str
    topic: str
    part: int
    status: str
    complete: float | None
    lag: int | None
    lag_ms: int | None
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HealthCount:
    """Partitions with this health, and groups whose worst partition has it."""

    status: str
    partitions: int
    groups: int


@dataclass(frozen=True, slots=True)
class WorstGroup:
    group: str
    status: str
    unhealthy: int
    partitions: int
    lag: int | None


@dataclass(frozen=True, slots=True)
class HealthSummary:
    """`worst_partitions` come worst first; `more_unhealthy` counts those left out."""

    at_ms: int
    groups: int
    healthy: int
    counts: tuple[HealthCount, ...]
    worst: WorstGroup | None
    worst_partitions: tuple[PartitionHealth, ...]
    more_unhealthy: int


@dataclass(frozen=True, slots=True)
class Rebalance:
    group: str
    generation: int | None
    started_ms: int | None
    ended_ms: int
    duration_ms: int | None
    cause: str | None
    reason: str | None
    joined: int | None
    left: int | None
    members: int | None
    moved_parts: int | None
    skew: float | None
    commits_rejected: int | None


@dataclass(frozen=True, slots=True)
class Rebalances:
    """`newest` is in order of time, newest last; `busiest` are groups with their number of rebalances, `counts` all."""

    count: int
    groups: int
    without_duration: int
    newest: tuple[Rebalance, ...]
    busiest: tuple[tuple[str, int], ...]
    counts: dict[str, int] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group in the overview. `status` is that of its worst partition; `page` the address of its page."""

    group: str
    page: str
    status: str | None
    now: GroupNow | None
    rebalances: int


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """A partition of a group: its health at the newest evaluation, its lag at the last known point."""

    topic: str
    part: int
    status: str | None
    complete: float | None
    lag: int | None
    lag_ms: int | None
    consume_rate: float | None
    produce_rate: float | None
    eta_s: float | None
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Anomaly:
    """`ended_ms` None: not yet. `low` and `high` are the usual range."""

    metric: str
    since_ms: int
    ended_ms: int | None
    worst: float | None
    low: float | None
    high: float | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """What the page of a group shows. `lag_map` has a row per partition. `partitions` come worst first, `anomalies` newest."""

    group: str
    status: str | None
    at_ms: int | None
    partitions: tuple[PartitionRow, ...]
    lag_map: LagMap | None
    rebalances: Rebalances | None
    anomalies: tuple[Anomaly, ...] = ()

    @property
    def unhealthy(self) -> int:
        return sum(row.status not in (None, "OK") for row in self.partitions)

    @property
    def lag(self) -> int | None:
        known = [row.lag for row in self.partitions if row.lag is not None]
        return sum(known) if known else None


@dataclass(frozen=True, slots=True)
class Facts:
    """`rows` counts the committed rows of each table. `every` are all groups, worst first."""

    rows: dict[str, int]
    first_ms: int | None
    last_ms: int | None
    groups: int
    lag_map: LagMap | None
    now: tuple[GroupNow, ...]
    more_now: int
    behind_groups: int
    health: HealthSummary | None
    rebalances: Rebalances | None
    cluster: str | None
    every: tuple[GroupRow, ...] = ()
    lag_step_ms: int = 0
    lag_period_ms: tuple[int, ...] = ()
