"""Rows about all groups of a cluster as the dashboard watches them."""

from __future__ import annotations

from enum import StrEnum

from broker.light_dataclasses import dataclass
from kgctl.model.failure import RowError
from kgctl.model.health import Health


class EventKind(StrEnum):
    VERDICT = "verdict"
    REBALANCE = "rebalance"
    MEMBER = "member"
    GROUP = "group"
    CLUSTER = "cluster"


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """What happened to a group, or to the cluster (`group` is None). `wall_ms` is the time in ms since 1970, `text` has no name
    of the group. `health`: the verdict that began, `was` the one before; `seconds`: how long it took. `parts`: the same verdict
    of several groups at one moment; `group` is None then.
    """

    wall_ms: int
    kind: EventKind
    group: str | None
    text: str
    health: Health | None = None
    seconds: float | None = None
    was: Health | None = None
    parts: tuple[ClusterEvent, ...] = ()

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that it is about."""
        return tuple(one.group or "" for one in self.parts) if self.parts else (self.group,) if self.group else ()


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over all groups with known values, except unused ones. Rates are in records/s.

    `lag_per_s` is how fast the lag grew over the last minute. `rate_in` counts a record once, however many groups read it.
    """

    lag: int | None = None
    lag_per_s: float | None = None
    rate_in: float | None = None
    rate_out: float | None = None


@dataclass(frozen=True, slots=True)
class FrameGroup:
    """A group as the dashboard shows it. Rates are in records/s; `lags` has ten minutes, oldest first, null where nothing is known."""

    group: str
    type: str | None = None
    state: str | None = None
    members: int | None = None
    lag: int | None = None
    rate_in: float | None = None
    rate_out: float | None = None
    rebalanced_s: float | None = None
    verdict: str | None = None
    verdict_reason: str = ""
    lags: tuple[float | None, ...] = ()
    error: RowError | None = None


@dataclass(frozen=True, slots=True)
class FramePartition:
    """A partition of the group that the dashboard shows, with the verdict about the group."""

    group: str
    topic: str | None = None
    partition: int | None = None
    consumer_id: str | None = None
    client_id: str | None = None
    committed: int | None = None
    log_end: int | None = None
    lag: int | None = None
    rate_in: float | None = None
    rate_out: float | None = None
    eta_s: float | None = None
    state: str | None = None
    verdict: str | None = None
    verdict_reason: str = ""
    error: RowError | None = None
