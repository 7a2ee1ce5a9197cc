"""Derives rebalances from successive snapshots, for clusters that keep no history of a group.

Times are those of the snapshots that first show a change, so a duration may be off by the refresh interval. A change that
comes and goes between two snapshots is missed.
"""

from __future__ import annotations

from broker.light_dataclasses import dataclass, replace
from kgctl.model.groups import REBALANCING, GroupDescription
from kgctl.model.watched import Assignment, GroupSnapshot, Outcome, Rebalance
from kgctl.watch.assignments import assignment_of, partitions_moved
from kgctl.watch.rebalances import Entry, Rebalances
from kgctl.watch.tracker import generation_of, is_changed, is_gone

REASON = "observed from outside"
DEAD = "Dead"
_COMPLETING = ("CompletingRebalance", "Reconciling")


@dataclass(slots=True)
class _UnderWay:
    """A rebalance that is under way: when a snapshot first showed it, and first showed its second phase (None: not yet)."""

    started_ms: int
    completing_ms: int | None
    is_start_observed: bool


class ObservedRebalances:
    """Adds a row for each rebalance that the snapshots show. Ignores a snapshot that is not newer than the previous one."""

    def __init__(self, rebalances: Rebalances) -> None:
        self._rebalances = rebalances
        self._newest: GroupSnapshot | None = None
        self._settled: GroupDescription | None = None  # as it was before the current rebalance
        self._before: Assignment | None = None
        self._under_way: _UnderWay | None = None

    def add(self, snapshot: GroupSnapshot) -> None:
        newest, group = self._newest, snapshot.group
        if newest is not None and snapshot.at_s <= newest.at_s:
            return
        if group.error is not None:
            if not is_gone(group.error):
                return
            group = GroupDescription(group.group, state=DEAD)
        was = newest.group if newest is not None else None
        self._newest = replace(snapshot, group=group)
        if group.state in REBALANCING:
            self._rebalancing(snapshot.wall_ms, was, group)
        elif self._under_way is not None:
            self._end(snapshot.wall_ms, group, _outcome(group))
        elif was is not None and _has_rebalanced(was, group):
            self._append(snapshot.wall_ms, group)
            self._change(group, ended_ms=snapshot.wall_ms, outcome=_outcome(group))
        if group.state not in REBALANCING:
            self._settled = group
            self._before = {} if group.state == DEAD else assignment_of(group)

    def _rebalancing(self, wall_ms: int, was: GroupDescription | None, group: GroupDescription) -> None:
        under_way = self._under_way
        is_completing = group.state in _COMPLETING
        if under_way is not None and under_way.completing_ms is not None and not is_completing:
            self._end(wall_ms, group, Outcome.SUPERSEDED)
            under_way = None
        if under_way is None:
            if self._settled is None:
                self._settled = group
            self._under_way = _UnderWay(
                wall_ms, wall_ms if is_completing else None, is_start_observed=not is_completing
            )
            self._append(wall_ms, group)
            return
        if under_way.completing_ms is None and is_completing:
            under_way.completing_ms = wall_ms
        self._change(group, ended_ms=None, outcome=Outcome.UNDER_WAY)

    def _end(self, wall_ms: int, group: GroupDescription, outcome: Outcome) -> None:
        self._change(group, ended_ms=wall_ms, outcome=outcome)
        self._under_way = None

    def _append(self, wall_ms: int, group: GroupDescription) -> None:
        row = Rebalance(
            started_ms=wall_ms,
            ended_ms=None,
            generation=None,
            cause=None,
            reason=REASON,
            prepare_ms=None,
            complete_ms=None,
            members=len(group.members),
            joined=(),
            joined_count=0,
            left=(),
            left_count=0,
            left_causes=(),
            partitions_moved=None,
            outcome=Outcome.UNDER_WAY,
            is_observed=True,
        )
        self._rebalances.append(Entry(row, before=self._before))
        self._change(group, ended_ms=None, outcome=Outcome.UNDER_WAY)

    def _change(self, group: GroupDescription, ended_ms: int | None, outcome: Outcome) -> None:
        """Update the newest row from a snapshot."""
        last = self._rebalances.last
        assert last is not None
        before = _ids(self._settled) if self._settled is not None else ()
        now = _ids(group)
        joined, left = _except(now, before), _except(before, now)
        assignment = assignment_of(group) if outcome in (Outcome.STABLE, Outcome.EMPTY) else None
        prepare_ms, complete_ms = self._durations(ended_ms)
        row = replace(
            last.row,
            ended_ms=ended_ms,
            generation=generation_of(group) if outcome in (Outcome.STABLE, Outcome.EMPTY) else None,
            prepare_ms=prepare_ms,
            complete_ms=complete_ms,
            members=len(now),
            joined=joined,
            joined_count=len(joined),
            left=left,
            left_count=len(left),
            partitions_moved=partitions_moved(last.before, assignment),
            outcome=outcome,
            assignment=assignment,
        )
        self._rebalances.replace_last(row)

    def _durations(self, ended_ms: int | None) -> tuple[int | None, int | None]:
        """The durations of the two phases, None for an open phase. Without a snapshot of the second phase, the first is all of it."""
        under_way = self._under_way
        if under_way is None:
            return None, None
        prepared_ms = ended_ms if under_way.completing_ms is None else under_way.completing_ms
        prepare_ms = complete_ms = None
        if prepared_ms is not None and under_way.is_start_observed:
            prepare_ms = prepared_ms - under_way.started_ms
        if under_way.completing_ms is not None and ended_ms is not None:
            complete_ms = ended_ms - under_way.completing_ms
        return prepare_ms, complete_ms


def _outcome(group: GroupDescription) -> Outcome:
    if group.state == DEAD:
        return Outcome.DELETED
    return Outcome.STABLE if group.members else Outcome.EMPTY


def _has_rebalanced(was: GroupDescription, now: GroupDescription) -> bool:
    """Whether a rebalance took place between two snapshots that do not show it."""
    if DEAD in (was.state, now.state):
        return was.state != now.state and bool(was.state != DEAD or now.members)
    if is_changed(was, now):
        return True
    is_generation_known = generation_of(was) is not None and generation_of(now) is not None
    return not is_generation_known and assignment_of(was) != assignment_of(now)


def _ids(group: GroupDescription) -> tuple[str, ...]:
    return tuple(member.consumer_id or "" for member in group.members)


def _except(some: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    known = frozenset(others)
    return tuple(each for each in some if each not in known)
