"""Rebalances as they look from outside, where the cluster keeps no story: what changed from one look to the next.

Times are those of the looks that first showed something: a length may be off by the interval of looks, and what came and went
between two looks was not seen.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from kgctl.model.groups import REBALANCING, GroupDescription
from kgctl.model.watched import Assignment, GroupLook, Rebalance
from kgctl.watch import kept
from kgctl.watch.assignments import assignment_of, partitions_moved
from kgctl.watch.kept import Kept, Rebalances
from kgctl.watch.track import generation_of, is_changed, is_gone

REASON = "seen from outside"
DEAD = "Dead"
_COMPLETING = ("CompletingRebalance", "Reconciling")


@dataclass(slots=True)
class _UnderWay:
    """A rebalance that goes on: when it was first seen, and when its second phase was; None: not seen."""

    started_ms: int
    completing_ms: int | None
    is_beginning_seen: bool


class SeenRebalances:
    """What looks show, added to the rows. A look that is not later than the one before shows nothing."""

    def __init__(self, rebalances: Rebalances) -> None:
        self._rebalances = rebalances
        self._newest: GroupLook | None = None
        self._settled: GroupDescription | None = None  # as it was outside of rebalances
        self._before: Assignment | None = None
        self._under_way: _UnderWay | None = None

    def add(self, look: GroupLook) -> None:
        newest, group = self._newest, look.group
        if newest is not None and look.at_s <= newest.at_s:
            return
        if group.error is not None:
            if not is_gone(group.error):
                return
            group = GroupDescription(group.group, state=DEAD)
        was = newest.group if newest is not None else None
        self._newest = replace(look, group=group)
        if group.state in REBALANCING:
            self._rebalancing(look.wall_ms, was, group)
        elif self._under_way is not None:
            self._end(look.wall_ms, group, _outcome(group))
        elif was is not None and _is_other(was, group):
            self._append(look.wall_ms, group)
            self._change(group, ended_ms=look.wall_ms, outcome=_outcome(group))
        if group.state not in REBALANCING:
            self._settled = group
            self._before = {} if group.state == DEAD else assignment_of(group)

    def _rebalancing(self, wall_ms: int, was: GroupDescription | None, group: GroupDescription) -> None:
        under_way = self._under_way
        is_completing = group.state in _COMPLETING
        if under_way is not None and under_way.completing_ms is not None and not is_completing:
            self._end(wall_ms, group, kept.CUT_SHORT)
            under_way = None
        if under_way is None:
            if self._settled is None:
                self._settled = group
            self._under_way = _UnderWay(
                wall_ms, wall_ms if is_completing else None, is_beginning_seen=not is_completing
            )
            self._append(wall_ms, group)
            return
        if under_way.completing_ms is None and is_completing:
            under_way.completing_ms = wall_ms
        self._change(group, ended_ms=None, outcome=kept.UNDER_WAY)

    def _end(self, wall_ms: int, group: GroupDescription, outcome: str) -> None:
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
            outcome=kept.UNDER_WAY,
            is_seen=True,
        )
        self._rebalances.append(Kept(row, before=self._before))
        self._change(group, ended_ms=None, outcome=kept.UNDER_WAY)

    def _change(self, group: GroupDescription, ended_ms: int | None, outcome: str) -> None:
        """The newest row as it is after a look."""
        last = self._rebalances.last
        assert last is not None
        before = _ids(self._settled) if self._settled is not None else ()
        now = _ids(group)
        joined, left = _without(now, before), _without(before, now)
        assignment = assignment_of(group) if outcome in (kept.STABLE, kept.EMPTY) else None
        prepare_ms, complete_ms = self._lengths(ended_ms)
        row = replace(
            last.row,
            ended_ms=ended_ms,
            generation=generation_of(group) if outcome in (kept.STABLE, kept.EMPTY) else None,
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
        self._rebalances.change_last(row)

    def _lengths(self, ended_ms: int | None) -> tuple[int | None, int | None]:
        """Of the two phases. Without a sight of the second, all of it was the first; None while a phase goes on."""
        under_way = self._under_way
        if under_way is None:
            return None, None
        prepared_ms = ended_ms if under_way.completing_ms is None else under_way.completing_ms
        prepare_ms = complete_ms = None
        if prepared_ms is not None and under_way.is_beginning_seen:
            prepare_ms = prepared_ms - under_way.started_ms
        if under_way.completing_ms is not None and ended_ms is not None:
            complete_ms = ended_ms - under_way.completing_ms
        return prepare_ms, complete_ms


def _outcome(group: GroupDescription) -> str:
    if group.state == DEAD:
        return kept.DELETED
    return kept.STABLE if group.members else kept.EMPTY


def _is_other(was: GroupDescription, now: GroupDescription) -> bool:
    """Whether there was a rebalance between two looks that show none."""
    if DEAD in (was.state, now.state):
        return was.state != now.state and bool(was.state != DEAD or now.members)
    if is_changed(was, now):
        return True
    is_generation_known = generation_of(was) is not None and generation_of(now) is not None
    return not is_generation_known and assignment_of(was) != assignment_of(now)


def _ids(group: GroupDescription) -> tuple[str, ...]:
    return tuple(member.consumer_id or "" for member in group.members)


def _without(some: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, ...]:
    known = frozenset(others)
    return tuple(each for each in some if each not in known)
