"""Rebalances as the story of a group tells them (docs/group-events.md)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kgctl.model.history import (
    DELETED,
    EMPTY,
    REPLACED,
    STABLE,
    STARTED,
    SUPERSEDED,
    GroupEventRow,
    end_of_unfinished,
)
from kgctl.model.watched import Rebalance
from kgctl.watch import kept
from kgctl.watch.kept import Kept, Rebalances

_ENDS = {STABLE: kept.STABLE, EMPTY: kept.EMPTY, DELETED: kept.DELETED, REPLACED: kept.REPLACED}


def tell(rebalances: Rebalances, events: Iterable[GroupEventRow]) -> None:
    """Add what the events, oldest first, tell after those before. Events of a kind that a newer broker may have are left out."""
    for event in events:
        if event.event == STARTED:
            _begin(rebalances, event)
        elif event.event in (STABLE, EMPTY):
            _end(rebalances, event)
        elif event.event in (DELETED, REPLACED):
            interrupt(rebalances)
            rebalances.append(Kept(_ended(event, event.timestamp)))


def interrupt(rebalances: Rebalances) -> None:
    """The rebalance that seems to be under way is not: a restart of the broker took it away, and nobody knows when."""
    last = rebalances.last
    if last is not None and last.row.outcome == kept.UNDER_WAY:
        row = replace(last.row, ended_ms=last.row.started_ms, outcome=kept.INTERRUPTED)
        rebalances.change_last(row)


def _begin(rebalances: Rebalances, event: GroupEventRow) -> None:
    last = rebalances.last
    if last is not None and last.row.outcome == kept.UNDER_WAY:
        if end_of_unfinished(last.from_generation, event) == SUPERSEDED:
            row = replace(last.row, ended_ms=event.timestamp, generation=event.generation, outcome=kept.CUT_SHORT)
            rebalances.change_last(row)
        else:
            interrupt(rebalances)
    row = replace(_ended(event, event.timestamp), ended_ms=None, generation=None, outcome=kept.UNDER_WAY)
    rebalances.append(Kept(row, from_generation=event.generation))


def _end(rebalances: Rebalances, event: GroupEventRow) -> None:
    last = rebalances.last
    if last is not None and last.row.outcome == kept.UNDER_WAY:
        rebalances.change_last(_ended(event, last.row.started_ms))
        return
    # Its beginning is not kept any more.
    started_ms = event.timestamp - (event.prepare_ms or 0) - (event.complete_ms or 0)
    rebalances.append(Kept(_ended(event, started_ms)))


def _ended(event: GroupEventRow, started_ms: int) -> Rebalance:
    return Rebalance(
        started_ms=started_ms,
        ended_ms=event.timestamp,
        generation=event.generation,
        cause=event.cause,
        reason=event.reason,
        prepare_ms=event.prepare_ms,
        complete_ms=event.complete_ms,
        members=event.members,
        joined=event.joined,
        joined_count=event.joined_count,
        left=event.left,
        left_count=event.left_count,
        left_causes=event.left_causes,
        partitions_moved=event.partitions_moved,
        outcome=_ENDS.get(event.event, kept.UNDER_WAY),
        assignment={} if event.event == EMPTY and event.assignment is None else event.assignment,
    )
