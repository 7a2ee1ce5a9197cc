"""All groups of a cluster over successive snapshots: rows, series of ten minutes, totals, and what happened."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence

from broker.light_dataclasses import dataclass, field
from kgctl.model.cluster_view import ClusterEvent, Totals
from kgctl.model.health import Health
from kgctl.model.watched import Snapshot, WatchedGroup
from kgctl.watch.cluster_events import ClusterEvents
from kgctl.watch.groups import GroupsWatch
from kgctl.watch.limits import LIMITS, Limits
from kgctl.watch.rates import Throughput
from kgctl.watch.series import BUCKET_S, Series, Values
from kgctl.watch.tracker import GroupTracker

# How many groups are computed in one go: a few milliseconds, so that keys do not wait for 10,000 groups.
AT_ONCE = 100
TREND_BUCKETS = 6
NO_SERIES = Series()


@dataclass(frozen=True, slots=True)
class ClusterView:
    """What the snapshots up to the newest one show. `rows` are ordered by group id, `events` by time.

    Series end with the newest snapshot; a view that is kept while newer snapshots come loses the oldest part of its series.
    """

    snapshot: Snapshot
    rows: Sequence[WatchedGroup]
    totals: Totals
    events: Sequence[ClusterEvent]
    _series: Mapping[str, Series] = field(repr=False, compare=False)
    _total: Series = field(repr=False, compare=False)

    def lags(self, group: str | None = None) -> Values:
        """Ten minutes of lag of a group, or of the cluster: series.BUCKETS values, oldest first, None where nothing is known."""
        return self._of(group).lags(self.snapshot.at_s)

    def rates_in(self, group: str | None = None) -> Values:
        return self._of(group).rates_in(self.snapshot.at_s)

    def rates_out(self, group: str | None = None) -> Values:
        return self._of(group).rates_out(self.snapshot.at_s)

    def row(self, group: str) -> WatchedGroup | None:
        from bisect import bisect_left

        place = bisect_left(self.rows, group, key=lambda row: row.group)
        found = self.rows[place] if place < len(self.rows) else None
        return found if found is not None and found.group == group else None

    def _of(self, group: str | None) -> Series:
        return self._total if group is None else self._series.get(group, NO_SERIES)


class ClusterWatch:
    """Judges all groups. The same snapshots in the same order lead to the same views."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self._groups = GroupsWatch(limits)
        self._series: dict[str, Series] = {}
        self._total = Series()
        self._arrivals = Throughput()
        self._ends: dict[tuple[str | None, int | None], int] = {}
        self._ends_before: dict[tuple[str | None, int | None], int] = {}
        self._events = ClusterEvents(limits)

    def tracker(self, name: str) -> GroupTracker:
        """The tracker of this group; it may get snapshots of this group alone, too."""
        return self._groups.tracker(name)

    def add(self, snapshot: Snapshot) -> ClusterView:
        """Add a snapshot and return the view."""
        adding = self.adding(snapshot)
        while True:
            try:
                next(adding)
            except StopIteration as over:
                view: ClusterView = over.value
                return view

    def adding(self, snapshot: Snapshot) -> Generator[None, None, ClusterView]:
        """As `add`, AT_ONCE groups at a time: a caller with 10,000 groups can do other things in between."""
        rows: list[WatchedGroup] = []
        for row in self._groups.rows(snapshot):
            rows.append(row)
            self._add(snapshot, row)
            if len(rows) % AT_ONCE == 0:
                yield
        if len(self._series) > len(rows):
            self._forget(rows)
        self._events.end(snapshot)
        return ClusterView(
            snapshot, rows, self._totals(snapshot.at_s, rows), self._events.newest, self._series, self._total
        )

    def _add(self, snapshot: Snapshot, row: WatchedGroup) -> None:
        series = self._series.get(row.group)
        if series is None:
            series = self._series[row.group] = Series()
        series.add(snapshot.at_s, row.unread, row.rate_in, row.rate_out)
        if row.health is not Health.UNUSED:
            ends = self._ends
            for one in snapshot.groups[row.group].partitions:
                if one.log_end_offset is not None:
                    key = one.topic, one.partition
                    ends[key] = max(one.log_end_offset, ends.get(key, 0))
        self._events.add(snapshot, row)

    def _forget(self, rows: Sequence[WatchedGroup]) -> None:
        names = {row.group for row in rows}
        self._series = {name: series for name, series in self._series.items() if name in names}

    def _totals(self, at_s: float, rows: Sequence[WatchedGroup]) -> Totals:
        # The lag of unused groups would hide that of the others.
        used = [row for row in rows if row.health is not Health.UNUSED]
        lags = [row.unread for row in used if row.unread is not None]
        rates_out = [row.rate_out for row in used if row.rate_out is not None]
        lag = sum(lags) if lags else None
        rate_in = self._arriving(at_s)
        rate_out = sum(rates_out) if rates_out else None
        self._total.add(at_s, lag, rate_in, rate_out)
        return Totals(lag, _growth(self._total.lags()), rate_in, rate_out)

    def _arriving(self, at_s: float) -> float | None:
        """Records/s that arrive in the partitions that groups read. Groups that read the same one count them once."""
        before, self._ends_before, self._ends = self._ends_before, self._ends, {}
        advances = [max(0, end - before[key]) for key, end in self._ends_before.items() if key in before]
        self._arrivals.add(at_s, sum(advances) if advances else None, None, 0)
        return self._arrivals.rate_in


def _growth(lags: Values) -> float | None:
    """Records/s over the newest TREND_BUCKETS buckets, or those of them that are known."""
    newest = [(place, lag) for place, lag in enumerate(lags[-TREND_BUCKETS - 1 :]) if lag is not None]
    if len(newest) < 2:
        return None
    (first, before), (last, now) = newest[0], newest[-1]
    return (now - before) / ((last - first) * BUCKET_S)
