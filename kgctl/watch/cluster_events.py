"""What happens to the groups of a cluster, from one snapshot to the next."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence

from broker.light_dataclasses import dataclass
from kgctl.model.cluster_view import ClusterEvent, EventKind
from kgctl.model.health import Health
from kgctl.model.watched import Snapshot, WatchedGroup

KEPT = 1_000
# A verdict must hold for this long before its change is an event, and longer in a group that changed a moment ago.
HOLD_S, HOLD_AGAIN_S, AGAIN_S = 10.0, 30.0, 120.0
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


class ClusterEvents:
    """The newest KEPT events, ordered by time."""

    def __init__(self) -> None:
        self._events: list[ClusterEvent] = []
        self._verdicts: dict[str, _Verdict] = {}
        self._seen: set[str] = set()
        self._is_first = True

    @property
    def newest(self) -> Sequence[ClusterEvent]:
        return tuple(self._events)

    def add(self, snapshot: Snapshot, row: WatchedGroup) -> None:
        """Add the row of a group in this snapshot."""
        self._seen.add(row.group)
        known = self._verdicts.get(row.group)
        if known is None:
            self._verdicts[row.group] = _Verdict(row.health, snapshot.at_s)
            if not self._is_first:
                self._add(ClusterEvent(snapshot.wall_ms, EventKind.GROUP, row.group, "created"))
        elif row.health is not known.word or known.next_word is not None:
            self._judge(snapshot, row, known)

    def end(self, snapshot: Snapshot) -> None:
        """All rows of this snapshot are added."""
        if not snapshot.errors and len(self._seen) < len(self._verdicts):
            for name in [name for name in self._verdicts if name not in self._seen]:
                del self._verdicts[name]
                self._add(ClusterEvent(snapshot.wall_ms, EventKind.GROUP, name, "deleted"))
        self._seen, self._is_first = set(), False

    def _judge(self, snapshot: Snapshot, row: WatchedGroup, known: _Verdict) -> None:
        word = row.health
        if word in _NOT_NEWS or word is known.word or known.word is None:
            if known.word is None:
                known.word = None if word in _NOT_NEWS else word
            known.next_word = None
            return
        if word is not known.next_word:
            known.next_word, known.next_at_s, known.next_ms = word, snapshot.at_s, snapshot.wall_ms
            known.next_reason = row.health_reason
            return
        hold_s = HOLD_AGAIN_S if snapshot.at_s - known.changed_at_s < AGAIN_S else HOLD_S
        if snapshot.at_s - known.next_at_s >= hold_s:
            self._add(ClusterEvent(known.next_ms, EventKind.VERDICT, row.group, row.health_reason, word))
            known.word, known.changed_at_s, known.next_word = word, snapshot.at_s, None

    def _add(self, event: ClusterEvent) -> None:
        insort(self._events, event, key=lambda one: one.wall_ms)
        del self._events[:-KEPT]
