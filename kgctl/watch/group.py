"""One group over successive snapshots: its row, its partitions with series of lag, and the phases of its members."""

from __future__ import annotations

from collections import Counter, deque

from broker.light_dataclasses import dataclass, replace
from kgctl.model.groups import SHARE, GroupDescription, PartitionLag
from kgctl.model.topic_partition import TopicPartition
from kgctl.model.watched import GroupSnapshot, WatchedGroup, WatchedPartition
from kgctl.watch.groups import failed, row_of
from kgctl.watch.phases import MemberPhase, member_phases
from kgctl.watch.rates import Throughput, advance, eta_s
from kgctl.watch.tracker import GroupTracker, is_gone

LAGS = 60
"""How many lags per partition are kept for the trend."""


@dataclass(frozen=True, slots=True)
class GroupView:
    """One group, ready to be shown. After a snapshot with an error, `summary` has the error and the rest is the last good view.

    `group` is None until a snapshot succeeds. `state_s` is the time in the current state in seconds; with `is_state_s_least`
    the real time may be longer. Partitions are ordered by topic and number.
    """

    summary: WatchedGroup
    group: GroupDescription | None = None
    state_s: float | None = None
    is_state_s_least: bool = False
    partitions: tuple[WatchedPartition, ...] = ()
    members: tuple[MemberPhase, ...] = ()


class GroupWatch:
    """Tracks one group: rates over a window, and the newest LAGS lags of each partition that it has now.

    `tracker` is that of the list of all groups, so that both judge by the same evidence.
    """

    def __init__(self, tracker: GroupTracker | None = None) -> None:
        self._reset(tracker)

    def _reset(self, tracker: GroupTracker | None = None) -> None:
        self._tracker = tracker or GroupTracker()
        self._partitions: dict[TopicPartition, _PartitionTracker] = {}
        self._view: GroupView | None = None

    def add(self, snapshot: GroupSnapshot) -> GroupView:
        """Add a snapshot and return the view. A deleted group has only its error."""
        group = snapshot.group
        if group.error is not None:
            return self._after_failure(group)
        tracker = self._tracker
        group = tracker.reconciled(group)
        tracker.add(snapshot.at_s, snapshot.wall_ms, group)
        trackers = {}
        for row in group.partitions:
            if row.topic is not None and row.partition is not None:
                key = TopicPartition(row.topic, row.partition)
                trackers[key] = self._partitions.get(key) or _PartitionTracker()
                trackers[key].add(snapshot.at_s, row)
        self._partitions = trackers
        owned = (key for member in group.members for key in member.owned())
        readers = Counter(owned) if group.type == SHARE else None
        self._view = GroupView(
            summary=row_of(tracker, group),
            group=group,
            state_s=tracker.state_s,
            is_state_s_least=tracker.is_state_s_least,
            partitions=tuple(
                trackers[key].row(key, None if readers is None else readers[key]) for key in sorted(trackers)
            ),
            members=member_phases(group),
        )
        return self._view

    def _after_failure(self, group: GroupDescription) -> GroupView:
        if is_gone(group.error):
            self._reset(GroupTracker(self._tracker.limits))
        if self._view is None:
            return GroupView(failed(group))
        return replace(self._view, summary=failed(group))


class _PartitionTracker:
    __slots__ = ("_at_s", "_lags", "_newest", "_throughput")

    def __init__(self) -> None:
        self._newest: PartitionLag | None = None
        self._at_s = 0.0
        self._throughput = Throughput()
        self._lags: deque[int] = deque(maxlen=LAGS)

    def add(self, at_s: float, row: PartitionLag) -> None:
        before = self._newest
        if before is not None and at_s <= self._at_s:
            return
        records_in = records_out = None
        if before is not None:
            records_in = advance(before.log_end_offset, row.log_end_offset)
            records_out = advance(before.current_offset, row.current_offset)
        self._throughput.add(at_s, records_in, records_out, row.lag or 0)
        if row.lag is not None:
            self._lags.append(row.lag)
        self._newest, self._at_s = row, at_s

    def row(self, key: TopicPartition, readers: int | None) -> WatchedPartition:
        newest, throughput = self._newest, self._throughput
        assert newest is not None
        return WatchedPartition(
            topic=key.topic,
            partition=key.partition,
            consumer_id=newest.consumer_id,
            client_id=newest.client_id,
            committed=newest.current_offset,
            log_end=newest.log_end_offset,
            lag=newest.lag,
            lags=tuple(self._lags),
            rate_in=throughput.rate_in,
            rate_out=throughput.rate_out,
            eta_s=eta_s(newest.lag, throughput.rate_in, throughput.rate_out),
            error=newest.error,
            readers=readers,
        )
