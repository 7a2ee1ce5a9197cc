"""Turns the events of a group's history (docs/group-events.md) into rebalances."""

from __future__ import annotations

from collections.abc import Iterable

from broker.light_dataclasses import replace
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
from kgctl.model.watched import Outcome, Rebalance
from kgctl.watch.rebalances import Entry, Rebalances

_OUTCOMES = {
    STABLE: Outcome.STABLE,
    EMPTY: Outcome.EMPTY,
    DELETED: Outcome.DELETED,
    REPLACED: Outcome.MEMBER_REPLACED,
}


def add_events(rebalances: Rebalances, events: Iterable[GroupEventRow]) -> None:
    """Add events, oldest first, that follow those added before. Unknown kinds, as of a newer broker, are skipped."""
    for event in events:
        if event.event == STARTED:
            _start(rebalances, event)
        elif event.event in (STABLE, EMPTY):
            _end(rebalances, event)
        elif event.event in (DELETED, REPLACED):
            interrupt(rebalances)
            rebalances.append(Entry(_row(event, event.timestamp)))


def interrupt(rebalances: Rebalances) -> None:
    """Mark the rebalance that is under way, if any, as interrupted: a broker restart ended it at an unknown time."""
    last = rebalances.last
    if last is not None and last.row.is_under_way:
        rebalances.replace_last(replace(last.row, ended_ms=last.row.started_ms, outcome=Outcome.INTERRUPTED))


def _start(rebalances: Rebalances, event: GroupEventRow) -> None:
    last = rebalances.last
    if last is not None and last.row.is_under_way:
        if end_of_unfinished(last.from_generation, event) == SUPERSEDED:
            reached = (
                last.from_generation + 1
                if event.counts_epochs and last.from_generation is not None
                else event.generation
            )
            row = replace(last.row, ended_ms=event.timestamp, generation=reached, outcome=Outcome.SUPERSEDED)
            rebalances.replace_last(row)
        else:
            interrupt(rebalances)
    row = replace(_row(event, event.timestamp), ended_ms=None, generation=None, outcome=Outcome.UNDER_WAY)
    rebalances.append(Entry(row, from_generation=event.generation - event.counts_epochs))


def _end(rebalances: Rebalances, event: GroupEventRow) -> None:
    last = rebalances.last
    if last is not None and last.row.is_under_way:
        rebalances.replace_last(_row(event, last.row.started_ms))
        return
    # Retention has removed the start event.
    started_ms = event.timestamp - (event.prepare_ms or 0) - (event.complete_ms or 0)
    rebalances.append(Entry(_row(event, started_ms)))


def _row(event: GroupEventRow, started_ms: int) -> Rebalance:
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
        joined_count=event.joined_count or 0,
        left=event.left,
        left_count=event.left_count or 0,
        left_causes=event.left_causes,
        partitions_moved=event.partitions_moved,
        outcome=_OUTCOMES.get(event.event, Outcome.UNDER_WAY),
        assignment={} if event.event == EMPTY and event.assignment is None else event.assignment,
    )
