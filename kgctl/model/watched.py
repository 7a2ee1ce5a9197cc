"""Rows about groups that are watched: what only several looks at a cluster can tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from kgctl.model.failure import RowError
from kgctl.model.groups import GroupDescription, TopicPartitions
from kgctl.model.history import GroupEventRow

Assignment = Mapping[str, tuple[TopicPartitions, ...]]  # by member id


@dataclass(frozen=True, slots=True)
class Look:
    """All groups of a cluster at one moment. `at_s` is of a monotonic clock, `wall_ms` since 1970.

    `errors` are of brokers that could not be asked: their groups are missing.
    """

    at_s: float
    wall_ms: int
    groups: Mapping[str, GroupDescription]
    errors: tuple[RowError, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupLook:
    """One group at one moment, and what its story says that was not told before.

    `events` is None where the cluster keeps no story (then `story_error` says why), or where it could not be asked.
    """

    at_s: float
    wall_ms: int
    group: GroupDescription
    events: tuple[GroupEventRow, ...] | None = None
    story_error: str | None = None


class Verdict(StrEnum):
    OK = "ok"
    LAGGING = "lagging"
    STUCK = "stuck"
    REBALANCING = "rebalancing"
    DEAD_MEMBERS = "dead members"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class WatchedGroup:
    """One group in the list of all. None is what is not known (yet); rates are records/s, `verdict_reason` a sentence."""

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
    verdict: Verdict
    verdict_reason: str
    error: RowError | None = None


@dataclass(frozen=True, slots=True)
class WatchedPartition:
    """One partition that a group reads. `lags` are the newest last, one per look; rates are records/s, `eta_s` seconds."""

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


@dataclass(frozen=True, slots=True)
class Rebalance:
    """One rebalance of a group: from the story, or (`is_seen`) as it looked from outside.

    Times are ms since 1970; `ended_ms` None: it is under way. `generation` is the one it led to, or None.
    `outcome` is "stable", "empty", "cut short" (by the next), or "interrupted": by a restart of the broker, and then `ended_ms`
    is the beginning, as the end is not known; "" while it is under way. What is no rebalance has its place among them, without
    a length: "deleted" and "member replaced". `assignment` is who got what by it, None: not known.
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
    outcome: str
    is_seen: bool = False
    assignment: Assignment | None = None
