"""What the rules look at: everything known about one group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from broker.light_dataclasses import dataclass, field
from kgctl.model.groups import GroupDescription, MemberRow
from kgctl.model.health import Judgement
from kgctl.model.history import GroupEventRow
from kgctl.model.lag import LagFacts, LagRow
from kgctl.model.transactions import GroupHold
from kgctl.watch.clock_skew import newest_ms
from kgctl.watch.health import health
from kgctl.watch.lag import Sample, lag_rows
from kgctl.watch.limits import LIMITS, Limits
from kgctl.watch.rows import key_of, lagging
from kgctl.watch.standing import standing
from kgctl.watch.tracker import GroupTracker

# Kinds of facts that may be missing; the rules name those that they need.
SAMPLES, HISTORY, HEARTBEATS, LOG_STARTS, RETENTION, STATE_TIME = (
    "samples",
    "history",
    "heartbeats",
    "log start offsets",
    "retention settings",
    "time of the state",
)
HOLDS = "open transactions"
# Rebalances, from the history or derived from stored generations.
REBALANCES = "rebalances"


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """One group: its newest description, its lag, its verdict, and what else is known.

    `course` has the descriptions of all samples, oldest first; `events` the history, oldest first. `missing` names the kinds
    of facts that are not known, each with the reason.
    """

    group: GroupDescription
    wall_ms: int
    verdict: Judgement
    rows: tuple[LagRow, ...] = ()
    course: tuple[GroupDescription, ...] = ()
    sampled_s: float = 0.0
    lag: LagFacts = field(default_factory=lambda: LagFacts(0))
    holds: tuple[GroupHold, ...] = ()
    events: tuple[GroupEventRow, ...] = ()
    missing: Mapping[str, str] = field(default_factory=dict)

    @property
    def state_s(self) -> float | None:
        """Seconds in the current state, if the cluster reports it."""
        since_ms = self.group.state_since_ms
        return None if since_ms is None else max(0, self.now_ms - since_ms) / 1000

    @property
    def now_ms(self) -> int:
        """The time by the coordinator's clock, which its events and states refer to; by ours if it does not report it."""
        return self.wall_ms if self.group.clock_ms is None else self.group.clock_ms

    @property
    def consumers(self) -> tuple[MemberRow, ...]:
        """The members if the group is Stable and their assignments are those of consumers."""
        members = self.group.members if self.group.state == "Stable" else ()
        return members if all(member.partitions is not None for member in members) else ()


def facts_of(
    samples: Sequence[Sample],
    lag: LagFacts,
    holds: Sequence[GroupHold],
    events: Sequence[GroupEventRow] | None,
    missing: Mapping[str, str],
    *,
    unused_after_s: float = LIMITS.unused_s,
) -> Iterator[GroupFacts]:
    """The facts about each group of the newest sample that has no error, by group id; `events` are those of all groups."""
    newest = samples[-1]
    found = {name: group for name, group in newest.groups.items() if group.error is None}
    rows: dict[str, list[LagRow]] = {}
    for row in lag_rows(samples, lag):
        rows.setdefault(row.group, []).append(row)
    of_group: dict[str, list[GroupEventRow]] = {}
    for event in events or ():
        of_group.setdefault(event.group, []).append(event)
    held: dict[str, list[GroupHold]] = {}
    for hold in holds:
        held.setdefault(hold.group, []).append(hold)
    absent = dict(missing) | dict(lag.missing)
    if len(samples) < 2:
        absent[SAMPLES] = "one snapshot only; --sample takes more"
    cluster_ms = newest_ms(found.values())
    for name in sorted(found):
        group = found[name]
        course = tuple(one.groups[name] for one in samples if name in one.groups and one.groups[name].error is None)
        own = absent | _missing_about(group)
        yield GroupFacts(
            group=group,
            wall_ms=newest.wall_ms,
            verdict=verdict_of(samples, name, lag, unused_after_s=unused_after_s, cluster_ms=cluster_ms),
            rows=tuple(rows.get(name, ())),
            course=course,
            sampled_s=newest.at_s - samples[0].at_s,
            lag=lag,
            holds=tuple(held.get(name, ())),
            events=tuple(of_group.get(name, ())),
            missing=own,
        )


def verdict_of(
    samples: Sequence[Sample],
    name: str,
    lag: LagFacts,
    *,
    unused_after_s: float = LIMITS.unused_s,
    cluster_ms: int | None = None,
) -> Judgement:
    """What the samples show together with the times of unread records; `cluster_ms` as for `standing`."""
    newest = samples[-1]
    group = newest.groups[name]
    unread = dict(group.unread_since)
    for row in lagging(group):
        key = key_of(row)
        position = (*key, max(row.current_offset or 0, lag.log_starts.get(key, 0)))
        if position in lag.record_times:
            unread[key] = lag.record_times[position]
    if len(samples) < 2:
        return standing(group, newest.wall_ms, None, unread, cluster_ms=cluster_ms, unused_after_s=unused_after_s)
    tracker = GroupTracker(Limits(unused_s=unused_after_s))
    for sample in samples:
        known = sample.groups.get(name)
        if known is not None and known.error is None:
            tracker.add(sample.at_s, sample.wall_ms, known, cluster_ms)
    return health(tracker, unread)


def _missing_about(group: GroupDescription) -> dict[str, str]:
    absent = {}
    if group.members and all(member.heartbeat_age_ms is None for member in group.members):
        absent[HEARTBEATS] = "the cluster does not report heartbeats"
    if group.state_since_ms is None:
        absent[STATE_TIME] = "the cluster does not report since when a group is in its state"
    return absent
