"""Rows about watched groups: snapshots of a cluster, and what several snapshots together show."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from broker.light_dataclasses import dataclass
from kgctl.model.failure import RowError
from kgctl.model.groups import GroupDescription, TopicPartitions
from kgctl.model.health import Evidence, Health
from kgctl.model.history import GroupEventRow

Assignment = Mapping[str, tuple[TopicPartitions, ...]]
"""Partitions by member id."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All groups of a cluster at one moment.

    `at_s` is a time of a monotonic clock, `wall_ms` the same moment in ms since 1970. `errors` has one entry for each broker
    that did not answer; the groups that it coordinates are missing.
    """

    at_s: float
    wall_ms: int
    groups: Mapping[str, GroupDescription]
    errors: tuple[RowError, ...] = ()
    # Those of all groups since the previous snapshot; None if the cluster keeps no history or if reading it failed.
    events: tuple[GroupEventRow, ...] | None = None
    brokers: int | None = None
    topics: int | None = None


@dataclass(frozen=True, slots=True)
class GroupSnapshot:
    """One group at one moment, with the events of its history since the previous snapshot.

    `events` is None if the cluster keeps no history or if reading it failed; `history_error` then gives the reason.
    """

    at_s: float
    wall_ms: int
    group: GroupDescription
    events: tuple[GroupEventRow, ...] | None = None
    history_error: str | None = None


@dataclass(frozen=True, slots=True)
class WatchedGroup:
    """One group in the list of all groups. Unknown values are None; rates are in records/s.

    `health`, `health_reason`, `evidence`, `uncommitted_records` and `health_brief` are those of a Judgement. `behind_s`: for how long
    the oldest unread record has waited, an estimate.
    """

    group: str
    type: str | None
    state: str | None
    generation: int | None
    protocol: str | None
    members: int | None
    lag: int | None
    rate_in: float | None
    rate_out: float | None
    rebalanced_s: float | None
    health: Health | None
    health_reason: str
    error: RowError | None = None
    evidence: Evidence | None = None
    uncommitted_records: int | None = None
    health_brief: str = ""
    behind_s: float | None = None

    @property
    def unread(self) -> int | None:
        """The lag; in a group that has committed nothing, the records from the start of the log."""
        return self.uncommitted_records if self.lag is None else self.lag


@dataclass(frozen=True, slots=True)
class WatchedPartition:
    """One partition that a group reads.

    `lags` has one value per snapshot, the newest last; rates are in records/s; `eta_s` is in seconds. A partition of a share group
    has no owner, but a number of `readers`, and a start offset in place of a committed one.
    """

    topic: str
    partition: int
    consumer_id: str | None
    client_id: str | None
    committed: int | None
    log_end: int | None
    lag: int | None
    lags: tuple[int, ...]
    rate_in: float | None
    rate_out: float | None
    eta_s: float | None
    error: RowError | None = None
    readers: int | None = None


class Outcome(StrEnum):
    """How a rebalance ended. DELETED and MEMBER_REPLACED are not rebalances, but have a place in the timeline."""

    UNDER_WAY = "under way"
    STABLE = "stable"
    EMPTY = "empty"
    SUPERSEDED = "superseded"
    """The next rebalance began before this one led to an assignment."""
    INTERRUPTED = "interrupted"
    """The broker restarted during the rebalance. The end is not known; `ended_ms` is the start."""
    DELETED = "deleted"
    MEMBER_REPLACED = "member replaced"


@dataclass(frozen=True, slots=True)
class Rebalance:
    """One rebalance of a group, read from the group's history or, with `is_observed`, derived from snapshots.

    Times are in ms since 1970; `ended_ms` is None while the rebalance is under way. `generation` is the generation that the
    rebalance led to. `assignment` is what each member got. Unknown values are None.
    """

    started_ms: int
    ended_ms: int | None
    generation: int | None
    cause: str | None
    reason: str | None
    prepare_ms: int | None
    complete_ms: int | None
    members: int | None
    joined: tuple[str, ...]
    joined_count: int
    left: tuple[str, ...]
    left_count: int
    left_causes: tuple[str, ...]
    partitions_moved: int | None
    outcome: Outcome
    is_observed: bool = False
    assignment: Assignment | None = None

    @property
    def is_under_way(self) -> bool:
        return self.outcome is Outcome.UNDER_WAY
