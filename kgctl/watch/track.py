"""What successive looks at one group show: its pace, partitions that stand still, since when nobody reads, what changed."""

from __future__ import annotations

from kgctl.model.failure import RowError
from kgctl.model.groups import CLASSIC, CONSUMER, REBALANCING, GroupDescription, PartitionLag
from kgctl.model.topic_partition import TopicPartition
from kgctl.watch.rates import Pace, paired
from kgctl.watch.skew import Skew

GONE = ("NOT_FOUND", "GROUP_ID_NOT_FOUND")


class GroupTrack:
    """One group over its looks. Times ending in `_at_s` are of the looks' monotonic clock; lags are records.

    `still` has, of each partition that is behind and whose commit has not moved since the look before, when that began.
    Partitions of topics that no member wants any more, left from an older subscription, count in `left_over_lag` alone.
    """

    __slots__ = (
        "at_s",
        "changed_at_s",
        "failed",
        "group",
        "had_members",
        "lag",
        "left_over_lag",
        "memberless_at_s",
        "moved_at_s",
        "pace",
        "skew",
        "state_at_s",
        "state_change_seen",
        "still",
        "wall_ms",
    )

    def __init__(self) -> None:
        self.group: GroupDescription | None = None
        self.at_s = 0.0
        self.wall_ms = 0
        self.pace = Pace()
        self.skew = Skew()
        self.lag: int | None = None
        self.left_over_lag = 0
        self.still: dict[TopicPartition, float] = {}
        self.moved_at_s: float | None = None
        self.memberless_at_s: float | None = None
        self.had_members = False
        self.changed_at_s: float | None = None
        self.state_at_s = 0.0
        self.state_change_seen = False
        self.failed: PartitionLag | None = None

    def add(self, at_s: float, wall_ms: int, group: GroupDescription) -> None:
        """A look at the group that worked. One that is not later than the newest changes nothing."""
        before = self.group
        if before is not None and at_s <= self.at_s:
            return
        self._add_partitions(at_s, before, group)
        self.skew.note(group.state_since_ms, wall_ms, round((at_s - self.at_s) * 1000))
        has_changed = before is not None and is_changed(before, group)
        if before is None:
            self.state_at_s = at_s
        elif before.state != group.state or (has_changed and group.state not in REBALANCING):
            # Other members in the same state: it was left and came back between two looks.
            self.state_at_s, self.state_change_seen = at_s, True
        if has_changed:
            self.changed_at_s = at_s
        if group.members:
            self.memberless_at_s, self.had_members = None, True
        elif self.memberless_at_s is None:
            self.memberless_at_s = at_s
        self.group, self.at_s, self.wall_ms = group, at_s, wall_ms

    def _add_partitions(self, at_s: float, before: GroupDescription | None, group: GroupDescription) -> None:
        came = went = lag_sum = left_over = 0
        is_in_known = is_out_known = is_lag_known = has_moved = False
        failed: PartitionLag | None = None
        still: dict[TopicPartition, float] = {}
        wanted = group.subscribed if group.members else None
        for was, row in paired(before.partitions if before else (), group.partitions):
            lag = row.lag
            if wanted is not None and row.consumer_id is None and row.topic not in wanted:
                left_over += lag if lag is not None and lag > 0 else 0
                continue
            if lag is not None:
                is_lag_known = True
                if lag > 0:
                    lag_sum += lag
            elif row.error is not None and row.consumer_id is not None and failed is None:
                failed = row
            if was is None:
                continue
            end, was_end = row.log_end_offset, was.log_end_offset
            if end is not None and was_end is not None:
                is_in_known = True
                if end > was_end:
                    came += end - was_end
            commit, was_commit = row.current_offset, was.current_offset
            if commit is None or was_commit is None:
                continue
            is_out_known = True
            if commit != was_commit:
                has_moved = True
                if commit > was_commit:
                    went += commit - was_commit
                continue
            key = TopicPartition(row.topic or "", row.partition or 0)
            if lag is None or was.lag is None:
                # A leader that does not answer now and then makes no partition move.
                if key in self.still:
                    still[key] = self.still[key]
            elif lag > 0 and was.lag > 0:
                still[key] = self.still.get(key, self.at_s)
        if has_moved:
            self.moved_at_s = at_s
        # No partition at all is nothing to read.
        self.lag = lag_sum if (is_lag_known or not group.partitions or left_over) and has_offsets(group) else None
        self.left_over_lag, self.still, self.failed = left_over, still, failed
        self.pace.add(at_s, came if is_in_known else None, went if is_out_known else None, lag_sum)

    @property
    def rebalanced_s(self) -> float | None:
        """Seconds since the last rebalance, 0 during one; None until one was seen, where the cluster does not tell."""
        group = self.group
        if group is None:
            return None
        if group.state in REBALANCING:
            return 0.0
        told_s = self._told_state_s()
        if told_s is not None:
            return told_s
        return None if self.changed_at_s is None else self.at_s - self.changed_at_s

    @property
    def state_s(self) -> float:
        """Seconds in the present state; where the cluster does not tell, since the look that first showed it."""
        told_s = self._told_state_s()
        return self.at_s - self.state_at_s if told_s is None else told_s

    @property
    def is_state_s_least(self) -> bool:
        """Whether the group may have been in its state for longer: nobody has seen it come into it."""
        return self._told_state_s() is None and not self.state_change_seen

    @property
    def memberless_s(self) -> float:
        """Seconds without members, as told or as seen; 0 if it has some."""
        if self.memberless_at_s is None:
            return 0.0
        return max(self.at_s - self.memberless_at_s, self._told_state_s() or 0.0)

    @property
    def is_memberless_s_least(self) -> bool:
        """Whether it may have had no members for longer: nobody has seen the last one go."""
        return self._told_state_s() is None and not self.had_members

    def _told_state_s(self) -> float | None:
        group = self.group
        if group is None or group.state_since_ms is None:
            return None
        return self.skew.age_ms(group.state_since_ms, self.wall_ms) / 1000


def has_offsets(group: GroupDescription) -> bool:
    """Whether groups of its type commit offsets that can be asked for; share groups do not."""
    return group.type is None or group.type in (CLASSIC, CONSUMER)


def generation_of(group: GroupDescription) -> int | None:
    """The generation; of a group of the newer protocol (KIP-848) its epoch; None where the cluster does not tell."""
    return group.group_epoch if group.generation is None else group.generation


def is_changed(before: GroupDescription, now: GroupDescription) -> bool:
    """Whether there was a rebalance between two looks: another generation, other members, or a state that came or went."""
    generations = generation_of(before), generation_of(now)
    if None not in generations:
        return generations[0] != generations[1] or _is_rebalancing_changed(before, now)
    if _is_rebalancing_changed(before, now) or len(before.members) != len(now.members):
        return True
    return any(was.consumer_id != member.consumer_id for was, member in zip(before.members, now.members, strict=True))


def is_gone(error: RowError | None) -> bool:
    """Whether the error says that there is no such group."""
    return error is not None and error.name in GONE


def _is_rebalancing_changed(before: GroupDescription, now: GroupDescription) -> bool:
    return before.state != now.state and (before.state in REBALANCING or now.state in REBALANCING)
