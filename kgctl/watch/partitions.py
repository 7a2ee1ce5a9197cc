"""One group over successive looks: its row, its partitions with series of lag, and where its members stand."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from kgctl.model.groups import GroupDescription, PartitionLag
from kgctl.model.topic_partition import TopicPartition
from kgctl.model.watched import GroupLook, WatchedGroup, WatchedPartition
from kgctl.watch.groups import failed, row_of
from kgctl.watch.phases import Standing, standings
from kgctl.watch.rates import Pace, eta_s, gone_forward
from kgctl.watch.track import GroupTrack, is_gone

LOOKS = 60


@dataclass(frozen=True, slots=True)
class GroupView:
    """One group as it is to be shown. After a look that failed, `summary` has the error and all else is of the last that worked.

    `group` is the description: state, leader, coordinator; None if no look worked. `state_s` is the time in its state in
    seconds, `is_state_s_least` says that it may be longer. Partitions are in the order of topic and number.
    """

    summary: WatchedGroup
    group: GroupDescription | None = None
    state_s: float | None = None
    is_state_s_least: bool = False
    partitions: tuple[WatchedPartition, ...] = ()
    members: tuple[Standing, ...] = ()


class GroupWatch:
    """What the looks at one group have shown so far: a window of rates and LOOKS lags per partition that it has now."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._track = GroupTrack()
        self._partitions: dict[TopicPartition, _PartitionTrack] = {}
        self._view: GroupView | None = None

    def add(self, look: GroupLook) -> GroupView:
        """The group after one more look; of a group that is gone, nothing but the error."""
        group = look.group
        if group.error is not None:
            return self._after_failure(group)
        track = self._track
        track.add(look.at_s, look.wall_ms, group)
        rows = [row for row in group.partitions if row.topic is not None and row.partition is not None]
        kept = {}
        for row in rows:
            key = TopicPartition(row.topic or "", row.partition or 0)
            kept[key] = self._partitions.get(key) or _PartitionTrack()
            kept[key].add(look.at_s, row)
        self._partitions = kept
        self._view = GroupView(
            summary=row_of(track, group),
            group=group,
            state_s=track.state_s,
            is_state_s_least=track.is_state_s_least,
            partitions=tuple(kept[key].row(*key) for key in sorted(kept)),
            members=standings(group),
        )
        return self._view

    def _after_failure(self, group: GroupDescription) -> GroupView:
        if is_gone(group.error):
            self._forget()
        seen = self._view
        if seen is None:
            return GroupView(failed(group))
        return GroupView(failed(group), seen.group, seen.state_s, seen.is_state_s_least, seen.partitions, seen.members)


class _PartitionTrack:
    __slots__ = ("_at_s", "_lags", "_newest", "_pace")

    def __init__(self) -> None:
        self._newest: PartitionLag | None = None
        self._at_s = 0.0
        self._pace = Pace()
        self._lags: deque[int] = deque(maxlen=LOOKS)

    def add(self, at_s: float, row: PartitionLag) -> None:
        was = self._newest
        if was is not None and at_s <= self._at_s:
            return
        came = went = None
        if was is not None:
            came = gone_forward(was.log_end_offset, row.log_end_offset)
            went = gone_forward(was.current_offset, row.current_offset)
        self._pace.add(at_s, came, went, row.lag or 0)
        if row.lag is not None:
            self._lags.append(row.lag)
        self._newest, self._at_s = row, at_s

    def row(self, topic: str, partition: int) -> WatchedPartition:
        newest, pace = self._newest, self._pace
        assert newest is not None
        return WatchedPartition(
            topic=topic,
            partition=partition,
            consumer_id=newest.consumer_id,
            client_id=newest.client_id,
            committed=newest.current_offset,
            log_end=newest.log_end_offset,
            lag=newest.lag,
            lags=tuple(self._lags),
            rate_in=pace.rate_in,
            rate_out=pace.rate_out,
            eta_s=eta_s(newest.lag, pace.rate_in, pace.rate_out),
            error=newest.error,
        )
