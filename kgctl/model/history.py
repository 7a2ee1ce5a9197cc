"""Rows about what happened to a group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from broker.light_dataclasses import dataclass, field, replace
from kgctl.model.groups import TopicPartitions

STARTED, STABLE, EMPTY = "rebalance_started", "stable", "empty"
REPLACED, FENCED, DELETED = "member_replaced", "member_fenced", "deleted"
# How a rebalance ended that has no end event: see `end_of_unfinished`.
SUPERSEDED, INTERRUPTED = "superseded", "interrupted"
# Why a member left that sent no heartbeat.
SESSION_TIMED_OUT = "session timed out"
# Causes that stored groups prove. Which of the two made a member leave, they do not say.
JOINED, LEFT_OR_TIMED_OUT = "member joined", "member left or timed out"
SUBSCRIPTION_CHANGED, TOPICS_CHANGED = "subscription changed", "topics changed"
GROUP_DELETED = "group deleted"
# Groups that count epochs instead of generations (KIP-848, KIP-932); as events spell them.
NEWER_TYPES = ("consumer", "share")
# The cause of a rebalance that somebody asked for.
REQUESTED = "requested by an admin"
# Stands for an event that this kgctl cannot read; `reason` says why, the other fields mean nothing.
UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class MemberClient:
    """The program behind a member id, which does not name it in the newer protocols."""

    client_id: str
    host: str


@dataclass(frozen=True, slots=True)
class GroupEventRow:
    """One event of a group's history; `timestamp` in ms since 1970.

    `joined`, `left` and `absent` may name fewer members than their counts say. `left_causes` has a cause for each member in
    `left`. `absent` are the members that had not rejoined when the rebalance timeout passed. `assignment` maps member ids to
    what the rebalance assigned to them; None if it is not known. `group_type` is classic, consumer or share, None in events of
    older brokers. `clients` has those of members that joined or left, by member id, as far as they are known.

    `is_derived`: the event was derived from what the coordinator stores of the group. Numbers that this does not prove are None.
    """

    group: str
    timestamp: int
    generation: int
    event: str
    cause: str | None
    reason: str | None
    prepare_ms: int | None
    complete_ms: int | None
    members: int | None
    joined_count: int | None
    left_count: int | None
    partitions_moved: int | None
    commits_rejected: int
    joined: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    left_causes: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    absent_count: int = 0
    assignment: Mapping[str, tuple[TopicPartitions, ...]] | None = None
    group_type: str | None = None
    clients: Mapping[str, MemberClient] = field(default_factory=dict)
    is_derived: bool = False

    @property
    def counts_epochs(self) -> bool:
        """The start of a rebalance then has the epoch that begins, and not the generation that ends."""
        return self.group_type in NEWER_TYPES


def end_of_unfinished(from_generation: int | None, next_start: GroupEventRow) -> str:
    """How a rebalance ended that has no end event before the start of the next one.

    SUPERSEDED if the generation rose meanwhile: its join phase ended, but it led to no assignment. Otherwise a restart of the
    broker ended it: INTERRUPTED.
    """
    return SUPERSEDED if from_generation is not None and next_start.generation > from_generation else INTERRUPTED


def by_rebalance(events: Iterable[GroupEventRow], *, is_last_over: bool = False) -> list[GroupEventRow]:
    """One row per rebalance: its end event, or its start with the way it ended as `event`.

    An end event repeats what its start says, except the commits that were rejected before it: they are added. Only the last
    start can be of a rebalance under way, unless `is_last_over`.
    """
    rows: list[GroupEventRow] = []
    unfinished: int | None = None  # the place of the start of a rebalance without an end so far
    for row in events:
        if unfinished is not None and row.event in (STABLE, EMPTY):
            row = replace(row, commits_rejected=row.commits_rejected + rows.pop(unfinished).commits_rejected)
            unfinished = None
        elif unfinished is not None and row.event in (STARTED, DELETED, REPLACED):
            rows[unfinished] = _ended(rows[unfinished], row)
            unfinished = None
        if row.event == STARTED:
            unfinished = len(rows)
        rows.append(row)
    if is_last_over and unfinished is not None:
        rows[unfinished] = replace(rows[unfinished], event=INTERRUPTED)
    return rows


def _ended(start: GroupEventRow, following: GroupEventRow) -> GroupEventRow:
    """The start of a rebalance that has no end event, with how it ended and the generation it reached."""
    end = end_of_unfinished(start.generation, following) if following.event == STARTED else INTERRUPTED
    return replace(start, event=end, generation=reached(start, following) if end == SUPERSEDED else start.generation)


def reached(start: GroupEventRow, next_start: GroupEventRow) -> int:
    """The generation or epoch of a rebalance that another one superseded."""
    return start.generation if start.counts_epochs else next_start.generation
