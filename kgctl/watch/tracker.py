"""Tracks one group over its snapshots: throughput, stalled partitions, and the times of changes."""

from __future__ import annotations

from collections.abc import Mapping

from broker.light_named_tuples import NamedTuple
from kgctl.model.failure import RowError
from kgctl.model.groups import CONSUMER, REBALANCING, GroupDescription, PartitionLag
from kgctl.model.health import Health
from kgctl.model.reconciliation import reconciled, unconfirmed
from kgctl.model.topic_partition import TopicPartition
from kgctl.watch.arrivals import Arrivals
from kgctl.watch.clock_skew import ClockSkew
from kgctl.watch.limits import LIMITS, Limits
from kgctl.watch.progress import has_offsets
from kgctl.watch.rates import Throughput, paired

GONE = ("NOT_FOUND", "GROUP_ID_NOT_FOUND")
# A commit that went back counts until it reaches where it was, or for this long.
REWOUND_S = 600.0


class Rewind(NamedTuple):
    """A committed offset that went back to `offset` from `highest`, at a time of the snapshots' clock."""

    at_s: float
    highest: int
    offset: int


class GroupTracker:
    """One group over its snapshots. Times ending in `_at_s` are of the snapshots' monotonic clock; lags are in records.

    `stalled_since` has the partitions with lag whose commit has not moved since the previous snapshot, each with the time of
    its last move. Partitions of topics that no member subscribes to any more count only in `left_over_lag`.
    `recent_from` is the newest of the descriptions, from `recent_at_s`: what was old then is older now. `recent_read` has the log
    ends of the partitions that the group had read by then.
    `uncommitted` is how many records partitions have that members own without a committed offset, and `has_commits` whether
    the group has any. When the members of a group without commits leave, `uncommitted` stays as it was: then no member owns partitions.
    `measured` is the verdict that rates have shown last, since the group had no lag; `is_growing` and `is_behind` say why it was LAGGING.
    """

    __slots__ = (
        "arrivals",
        "at_s",
        "caught_up_at_s",
        "changed_at_s",
        "failed",
        "first_at_s",
        "group",
        "had_members",
        "has_commits",
        "is_behind",
        "is_growing",
        "is_state_change_observed",
        "lag",
        "last_uncommitted",
        "least_ms",
        "left_over_lag",
        "limits",
        "measured",
        "memberless_at_s",
        "moved_at_s",
        "moved_before_s",
        "recent_at_s",
        "recent_from",
        "recent_read",
        "rewound",
        "skew",
        "stalled_since",
        "state_at_s",
        "throughput",
        "uncommitted",
        "uncommitted_at_s",
        "wall_ms",
    )

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.limits = limits
        self.group: GroupDescription | None = None
        self.at_s = self.first_at_s = 0.0
        self.wall_ms = 0
        self.least_ms: int | None = None
        self.throughput = Throughput()
        self.arrivals = Arrivals()
        self.skew = ClockSkew()
        self.lag: int | None = None
        self.left_over_lag = 0
        self.stalled_since: dict[TopicPartition, float] = {}
        self.moved_at_s: float | None = None
        self.moved_before_s: float | None = None
        self.caught_up_at_s: float | None = None
        self.measured: Health | None = None
        self.is_growing = self.is_behind = False
        self.uncommitted = self.last_uncommitted = 0
        self.uncommitted_at_s: float | None = None
        self.has_commits = False
        self.recent_from: Mapping[TopicPartition, int] = {}
        self.recent_read: Mapping[TopicPartition, int] = {}
        self.recent_at_s = 0.0
        self.rewound: dict[TopicPartition, Rewind] = {}
        self.memberless_at_s: float | None = None
        self.had_members = False
        self.changed_at_s: float | None = None
        self.state_at_s = 0.0
        self.is_state_change_observed = False
        self.failed: PartitionLag | None = None

    def add(self, at_s: float, wall_ms: int, group: GroupDescription, cluster_ms: int | None = None) -> None:
        """Add a description without error. Ignores one that is not newer than the previous one,
        except for its `recent_from`: a snapshot of this group alone may have been faster than that of all groups which has it.

        `cluster_ms` is the latest time that brokers of the cluster are known to have reported.
        """
        before = self.group
        group = self.reconciled(group)
        if group.recent_from and (at_s > self.recent_at_s or not self.recent_from):
            self._add_recent(at_s, group)
        if before is not None and at_s <= self.at_s:
            return
        if before is None:
            self.first_at_s = at_s
        self._add_clock(at_s, group, cluster_ms)
        self._add_partitions(at_s, before, group)
        self.arrivals.add(self.at_s, before, at_s, group)
        if group.clock_ms is None:
            self.skew.observe(group.state_since_ms, wall_ms, round((at_s - self.at_s) * 1000))
        has_changed = before is not None and is_changed(before, group)
        if before is None:
            self.state_at_s = at_s
        elif before.state != group.state or (has_changed and group.state not in REBALANCING):
            # The group left this state and returned to it between two snapshots.
            self.state_at_s, self.is_state_change_observed = at_s, True
        if has_changed:
            self.changed_at_s = at_s
        if group.members:
            self.memberless_at_s, self.had_members = None, True
        elif self.memberless_at_s is None:
            self.memberless_at_s = at_s
        self.group, self.at_s, self.wall_ms = group, at_s, wall_ms

    def reconciled(self, group: GroupDescription) -> GroupDescription:
        """The group with what earlier snapshots show that members of a consumer group have not given up."""
        before = self.group
        if group.type != CONSUMER:
            return group
        if before is not None and before.type == CONSUMER and group.state in REBALANCING:
            return reconciled(group, unconfirmed(before, group))
        # A recording may be older than the phases.
        return reconciled(group) if any(member.phase is None for member in group.members) else group

    def _add_recent(self, at_s: float, group: GroupDescription) -> None:
        self.recent_from, self.recent_at_s = group.recent_from, at_s
        self.recent_read = {
            TopicPartition(row.topic or "", row.partition or 0): row.log_end_offset or 0
            for row in group.partitions
            if row.lag == 0
        }

    def _add_clock(self, at_s: float, group: GroupDescription, cluster_ms: int | None) -> None:
        """Raise the lower bound of the cluster's time, which advances between snapshots."""
        known = [self.least_ms + round((at_s - self.at_s) * 1000)] if self.least_ms is not None else []
        if group.clock_ms is not None:
            known = [group.clock_ms]
        else:
            known += [one for one in (group.state_since_ms, group.last_commit_ms, cluster_ms) if one is not None]
        self.least_ms = max(known, default=None)

    def _add_partitions(self, at_s: float, before: GroupDescription | None, group: GroupDescription) -> None:
        records_in = records_out = lag_sum = left_over = uncommitted = 0
        has_commits = False
        is_in_known = is_out_known = is_lag_known = has_moved = False
        failed: PartitionLag | None = None
        stalled: dict[TopicPartition, float] = {}
        wanted = group.subscribed if group.members else None
        for was, row in paired(before.partitions if before else (), group.partitions):
            lag = row.lag
            if row.current_offset is not None:
                has_commits = True
            if wanted is not None and row.consumer_id is None and row.topic not in wanted:
                left_over += lag if lag is not None and lag > 0 else 0
                continue
            if lag is not None:
                is_lag_known = True
                if lag > 0:
                    lag_sum += lag
            elif row.error is not None and row.consumer_id is not None and failed is None:
                failed = row
            if row.current_offset is None and row.log_end_offset and row.consumer_id is not None and row.error is None:
                first = group.unread_from.get(TopicPartition(row.topic or "", row.partition or 0), 0)
                uncommitted += max(0, row.log_end_offset - first)
            if was is None:
                continue
            end, was_end = row.log_end_offset, was.log_end_offset
            if end is not None and was_end is not None:
                is_in_known = True
                if end > was_end:
                    records_in += end - was_end
            commit, was_commit = row.current_offset, was.current_offset
            if commit is None or was_commit is None:
                continue
            is_out_known = True
            if commit != was_commit:
                has_moved = True
                if commit > was_commit:
                    records_out += commit - was_commit
                elif end is not None and was_end is not None and end >= was_end:
                    self._rewind(TopicPartition(row.topic or "", row.partition or 0), at_s, was_commit, commit)
                continue
            key = TopicPartition(row.topic or "", row.partition or 0)
            if lag is None or was.lag is None:
                # A leader that fails to answer once in a while does not mean that the commit moved.
                if key in self.stalled_since:
                    stalled[key] = self.stalled_since[key]
            elif lag > 0 and was.lag > 0:
                stalled[key] = self.stalled_since.get(key, self.at_s)
        if has_moved:
            self.moved_before_s, self.moved_at_s = self.moved_at_s, at_s
        if self.rewound:
            self._forget_rewinds(at_s, group)
        self.has_commits = has_commits
        self._add_uncommitted(at_s, before, group, uncommitted)
        # A group whose members own no partitions has no lag. Of one without members and commits it is not known what it reads.
        is_idle = bool(group.members) and not group.partitions
        self.lag = lag_sum if (is_lag_known or is_idle or left_over) and has_offsets(group) else None
        if self.lag == 0:
            self.caught_up_at_s, self.measured = at_s, None
            self.is_growing = self.is_behind = False
        self.left_over_lag, self.stalled_since, self.failed = left_over, stalled, failed
        self.throughput.add(at_s, records_in if is_in_known else None, records_out if is_out_known else None, lag_sum)

    def _add_uncommitted(
        self, at_s: float, before: GroupDescription | None, group: GroupDescription, uncommitted: int
    ) -> None:
        if self.has_commits or uncommitted or group.state == "Stable":
            self.last_uncommitted = 0 if self.has_commits else uncommitted
        is_left = not group.members and not group.partitions
        self.uncommitted = self.last_uncommitted if is_left else uncommitted
        is_settled = is_left or group.state == "Stable"
        has_changed = not is_left and before is not None and is_changed(before, group)
        if not self.uncommitted or not is_settled or has_changed:
            self.uncommitted_at_s = None
        if self.uncommitted and is_settled and self.uncommitted_at_s is None:
            self.uncommitted_at_s = at_s

    def _rewind(self, key: TopicPartition, at_s: float, highest: int, offset: int) -> None:
        known = self.rewound.get(key)
        self.rewound[key] = Rewind(at_s, highest if known is None else max(highest, known.highest), offset)

    def _forget_rewinds(self, at_s: float, group: GroupDescription) -> None:
        commits = {
            TopicPartition(row.topic or "", row.partition or 0): row.current_offset
            for row in group.partitions
            if row.current_offset is not None
        }
        self.rewound = {
            key: one
            for key, one in self.rewound.items()
            if at_s - one.at_s < REWOUND_S and commits.get(key, one.highest) < one.highest
        }

    def age_s(self, at_ms: int) -> float:
        """The least time in seconds since a moment by the cluster's clock: proven, whatever our clock says."""
        return max(0, (self.least_ms or 0) - at_ms) / 1000

    def apparent_age_s(self, at_ms: int) -> float:
        """The time in seconds since a moment by the cluster's clock, if it goes like ours where the cluster does not report it."""
        if self.group is not None and self.group.clock_ms is not None:
            return self.age_s(at_ms)
        return max(0, self.wall_ms + self.skew.ahead_ms - at_ms, (self.least_ms or 0) - at_ms) / 1000

    @property
    def proven_state_s(self) -> float:
        """At least how long the group has been in its state, in seconds."""
        since_ms = None if self.group is None else self.group.state_since_ms
        return max(self.at_s - self.state_at_s, 0.0 if since_ms is None else self.age_s(since_ms))

    @property
    def rebalanced_s(self) -> float | None:
        """Seconds since the last rebalance, 0 during one; None if the cluster does not report it and no snapshot showed one."""
        group = self.group
        if group is None:
            return None
        if group.state in REBALANCING:
            return 0.0
        reported_s = self._reported_state_s()
        if reported_s is not None:
            return reported_s
        return None if self.changed_at_s is None else self.at_s - self.changed_at_s

    @property
    def state_s(self) -> float:
        """Seconds in the current state: reported by the cluster, else since the snapshot that first showed it."""
        reported_s = self._reported_state_s()
        return self.at_s - self.state_at_s if reported_s is None else reported_s

    @property
    def is_state_s_least(self) -> bool:
        """Whether `state_s` is a lower bound, because no snapshot showed the group enter the state."""
        return self._reported_state_s() is None and not self.is_state_change_observed

    @property
    def memberless_s(self) -> float:
        """At least how many seconds the group has been without members; 0 if it has members."""
        if self.memberless_at_s is None:
            return 0.0
        return max(self.at_s - self.memberless_at_s, self.proven_state_s)

    @property
    def is_memberless_s_least(self) -> bool:
        """Whether `memberless_s` is a lower bound: no snapshot showed the group with members, nor a clock when they left."""
        is_reported = self.group is not None and None not in (self.group.state_since_ms, self.group.clock_ms)
        return not is_reported and not self.had_members

    def _reported_state_s(self) -> float | None:
        group = self.group
        if group is None or group.state_since_ms is None:
            return None
        return self.apparent_age_s(group.state_since_ms)


def generation_of(group: GroupDescription) -> int | None:
    """The generation, or the epoch of a KIP-848 group; None if the cluster does not report it."""
    return group.group_epoch if group.generation is None else group.generation


def is_changed(before: GroupDescription, now: GroupDescription) -> bool:
    """Whether a rebalance took place between two snapshots: the generation, the members, or a rebalancing state changed."""
    generations = generation_of(before), generation_of(now)
    if None not in generations:
        return generations[0] != generations[1] or _is_rebalancing_changed(before, now)
    if _is_rebalancing_changed(before, now) or len(before.members) != len(now.members):
        return True
    return any(was.consumer_id != member.consumer_id for was, member in zip(before.members, now.members, strict=True))


def is_gone(error: RowError | None) -> bool:
    """Whether the error means that the group does not exist."""
    return error is not None and error.name in GONE


def _is_rebalancing_changed(before: GroupDescription, now: GroupDescription) -> bool:
    return before.state != now.state and (before.state in REBALANCING or now.state in REBALANCING)
