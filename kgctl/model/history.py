"""Rows about what happened to a group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kgctl.model.groups import TopicPartitions

STARTED, STABLE, EMPTY = "rebalance_started", "stable", "empty"
# In place of an event that this kgctl cannot read; `reason` says why, all else means nothing.
UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class GroupEventRow:
    """One event of a group's history; `timestamp` in ms since 1970. `joined`, `left` and `absent` may name fewer than there were.

    `left_causes` says of each in `left` why; `absent` are those who were awaited when the rebalance timeout had passed.
    `assignment` is what each member got by the rebalance, by member id; None where it is not known.
    """

    group: str
    timestamp: int
    generation: int
    event: str
    cause: str | None
    reason: str | None
    prepare_ms: int | None
    complete_ms: int | None
    members: int
    joined_count: int
    left_count: int
    partitions_moved: int | None
    commits_rejected: int
    joined: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    left_causes: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    absent_count: int = 0
    assignment: Mapping[str, tuple[TopicPartitions, ...]] | None = None
