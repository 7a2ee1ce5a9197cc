"""What happens to the groups of a cluster, from one snapshot to the next."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Sequence

from broker.light_dataclasses import dataclass
from kgctl.model.cluster_view import ClusterEvent, EventKind
from kgctl.model.groups import CONSUMER, SHARE, GroupDescription
from kgctl.model.health import FAULTS, Health
from kgctl.model.history import GroupEventRow, MemberClient
from kgctl.model.watched import GroupSnapshot, Rebalance, Snapshot, WatchedGroup
from kgctl.watch.group_events import of_history, of_rebalance
from kgctl.watch.limits import LIMITS, Limits
from kgctl.watch.observed import ObservedRebalances
from kgctl.watch.rebalances import Rebalances
from kgctl.watch.restarts import after_restart, is_soon
from kgctl.watch.tracker import is_changed

KEPT = 1_000
# From this number on, equal verdicts of one snapshot are one event.
MANY, NAMED = 3, 3
# Snapshots and the history have the same deletion no further apart than this.
NEAR_MS = 60_000
# A rebalance is an event of its own; a group without evidence has no verdict.
_NOT_NEWS = (None, Health.REBALANCING)


@dataclass(slots=True)
class _Verdict:
    """The announced verdict of a group, and the one that may replace it."""

    word: Health | None
    changed_at_s: float
    next_word: Health | None = None
    next_at_s: float = 0.0
    next_ms: int = 0
    next_reason: str = ""


class _Observed:
    """The rebalances of a group, from the snapshot before the first one."""

    def __init__(self) -> None:
        self._rebalances = Rebalances()
        self.add = ObservedRebalances(self._rebalances).add
        self.clients: dict[str, MemberClient] = {}

    def note_clients(self, group: GroupDescription) -> None:
        """Member ids of newer groups do not name the client."""
        if group.type in (CONSUMER, SHARE):
            for member in group.members:
                self.clients[member.consumer_id or ""] = MemberClient(member.client_id or "", member.host or "")

    @property
    def rows(self) -> Sequence[Rebalance]:
        return self._rebalances.rows


class ClusterEvents:
    """The newest KEPT events, ordered by time."""

    def __init__(self, limits: Limits = LIMITS) -> None:
        self._limits = limits
        self._events: list[ClusterEvent] = []
        self._verdicts: dict[str, _Verdict] = {}
        self._seen: set[str] = set()
        self._before: Snapshot | None = None
        self._changed: dict[Health, list[ClusterEvent]] = {}  # by verdict, in this snapshot
        self._first_at_s = 0.0
        self._unjudged: set[str] | None = set()  # of the first snapshot; None once the faults at the start are counted
        self._has_history = False
        self._observed: dict[str, _Observed] = {}  # of groups whose rebalance is under way
        self._started_ms: dict[int | None, int] = {}  # by broker

    @property
    def newest(self) -> Sequence[ClusterEvent]:
        return tuple(self._events)

    def add(self, snapshot: Snapshot, row: WatchedGroup) -> None:
        """Add the row of a group in this snapshot."""
        self._seen.add(row.group)
        known = self._verdicts.get(row.group)
        if known is None:
            is_new = self._before is not None and row.health in FAULTS
            self._verdicts[row.group] = _Verdict(None if is_new or row.health in _NOT_NEWS else row.health, -math.inf)
            if self._before is not None:
                self._add(ClusterEvent(snapshot.wall_ms, EventKind.GROUP, row.group, "created"))
            elif self._unjudged is not None and row.evidence is not None:
                self._unjudged.add(row.group)
        elif self._unjudged and row.group in self._unjudged and row.evidence is None:
            self._unjudged.discard(row.group)
            known.word = None if row.health in _NOT_NEWS else row.health
        elif row.health is not known.word or known.next_word is not None:
            self._judge(snapshot, row, known)
        group = snapshot.groups[row.group]
        if group.error is None:
            self._check_restart(group)
            if not self._has_history and snapshot.events is None:
                self._observe(snapshot, group)

    def end(self, snapshot: Snapshot) -> None:
        """All rows of this snapshot are added."""
        if not snapshot.errors and len(self._seen) < len(self._verdicts):
            for name in [name for name in self._verdicts if name not in self._seen]:
                del self._verdicts[name]
                deleted = ClusterEvent(snapshot.wall_ms, EventKind.GROUP, name, "deleted")
                if not self._is_known(deleted):
                    self._add(deleted)
        if self._before is None:
            self._first_at_s = snapshot.at_s
        if self._unjudged is not None:
            self._count_faults(snapshot, self._unjudged)
        for word, changed in self._changed.items():
            self._add_changes(word, changed)
        self._changed = {}
        self._has_history = self._has_history or snapshot.events is not None
        for event in snapshot.events or ():
            self._add_history(event)
        self._seen, self._before = set(), snapshot

    def _count_faults(self, snapshot: Snapshot, unjudged: set[str]) -> None:
        """The faults at the start are one event, as they may be old, once there is evidence about all groups or for a while."""
        if unjudged & self._seen and snapshot.at_s - self._first_at_s < self._limits.growth_span_s:
            return
        self._unjudged = None
        count = sum(known.word in FAULTS and known.changed_at_s == -math.inf for known in self._verdicts.values())
        if count:
            need = "group needs" if count == 1 else "groups need"
            self._add(ClusterEvent(snapshot.wall_ms, EventKind.VERDICT, None, f"{count:,} {need} attention"))

    def _add_changes(self, word: Health, changed: Sequence[ClusterEvent]) -> None:
        if len(changed) < MANY:
            for one in changed:
                self._add(one)
            return
        names = ", ".join(one.group or "" for one in changed[:NAMED])
        more = len(changed) - NAMED
        text = f"{names} and {more:,} more" if more else names
        first_ms = min(one.wall_ms for one in changed)
        self._add(ClusterEvent(first_ms, EventKind.VERDICT, None, text, word, parts=tuple(changed)))

    def _judge(self, snapshot: Snapshot, row: WatchedGroup, known: _Verdict) -> None:
        word = row.health
        if known.word is None and word not in _NOT_NEWS and word not in FAULTS:
            known.word = word
        if word in _NOT_NEWS or word is known.word:
            known.next_word = None
            return
        if word is not known.next_word:
            known.next_word, known.next_at_s, known.next_ms = word, snapshot.at_s, snapshot.wall_ms
            known.next_reason = row.health_reason
            return
        is_again = snapshot.at_s - known.changed_at_s < self._limits.again_s
        hold_s = self._limits.hold_again_s if is_again else self._limits.hold_s
        if snapshot.at_s - known.next_at_s >= hold_s:
            reason, was = row.health_reason, known.word
            changed = ClusterEvent(known.next_ms, EventKind.VERDICT, row.group, reason, word, was=was)
            self._changed.setdefault(word, []).append(changed)
            known.word, known.changed_at_s, known.next_word = word, snapshot.at_s, None

    def _check_restart(self, group: GroupDescription) -> None:
        broker, started_ms = group.coordinator_id, group.broker_started_ms
        if started_ms is None:
            return
        known = self._started_ms.get(broker)
        if known != started_ms:
            self._started_ms[broker] = started_ms
            if known is not None and started_ms > known:
                text = "broker restarted" if broker is None else f"broker {broker} restarted"
                self._add(ClusterEvent(started_ms, EventKind.CLUSTER, None, text))

    def _add_history(self, row: GroupEventRow) -> None:
        if any(is_soon(row.timestamp, started_ms) and row.timestamp >= started_ms for started_ms in self._restarts):
            row = after_restart(row, None)
        event = of_history(row)
        if event is not None and not (event.kind is EventKind.GROUP and self._is_known(event)):
            self._add(event)

    def _is_known(self, event: ClusterEvent) -> bool:
        """Whether snapshots have shown this deletion already."""
        return any(
            one.group == event.group and one.kind is event.kind and one.text == event.text
            for one in self._events
            if one.wall_ms >= event.wall_ms - NEAR_MS
        )

    @property
    def _restarts(self) -> list[int]:
        return [*self._started_ms.values(), *(one.wall_ms for one in self._events if one.kind is EventKind.CLUSTER)]

    def _observe(self, snapshot: Snapshot, group: GroupDescription) -> None:
        """Follow a rebalance from the snapshot before its first sign to its end."""
        observed = self._observed.get(group.group)
        if observed is None:
            before = self._before.groups.get(group.group) if self._before is not None else None
            if self._before is None or before is None or before.error is not None or not is_changed(before, group):
                return
            observed = self._observed[group.group] = _Observed()
            observed.add(GroupSnapshot(self._before.at_s, self._before.wall_ms, before))
            observed.note_clients(before)
        observed.add(GroupSnapshot(snapshot.at_s, snapshot.wall_ms, group))
        observed.note_clients(group)
        rows = observed.rows
        if not rows or not rows[-1].is_under_way:
            del self._observed[group.group]
            for row in rows:
                if (event := of_rebalance(group.group, row, observed.clients)) is not None:
                    self._add(event)

    def _add(self, event: ClusterEvent) -> None:
        insort(self._events, event, key=lambda one: one.wall_ms)
        del self._events[:-KEPT]
