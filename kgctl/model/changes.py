"""Rows about changes: what a plan would do, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass

from kgctl.model.failure import RowError

PLANNED, DONE, FAILED = "planned", "done", "failed"
# How a group is brought to rebalance, and what became of its members then.
TRIGGER, EVICTION = "trigger", "eviction"
REJOINED, JOINED, GONE = "rejoined", "joined", "gone"


@dataclass(frozen=True, slots=True)
class ResetRow:
    """One committed offset to move. `delta` counts the records read again (negative) or skipped.

    Without a partition it stands for a topic that is not there.
    """

    group: str
    topic: str
    partition: int | None
    old_offset: int | None
    new_offset: int | None
    delta: int | None
    note: str | None = None
    status: str = PLANNED
    error: RowError | None = None


@dataclass(frozen=True, slots=True)
class ResetPlan:
    group: str
    state: str | None
    rows: tuple[ResetRow, ...]

    @property
    def failed(self) -> bool:
        return any(row.error for row in self.rows)


@dataclass(frozen=True, slots=True)
class GroupChange:
    """A group to delete, or that was deleted."""

    group: str
    state: str | None
    status: str = PLANNED
    error: RowError | None = None


@dataclass(frozen=True, slots=True)
class MemberChange:
    """A member to remove, or that was removed."""

    group: str
    consumer_id: str
    group_instance_id: str | None
    host: str | None
    client_id: str | None
    status: str = PLANNED
    error: RowError | None = None


@dataclass(frozen=True, slots=True)
class RebalanceRow:
    """A member of a group that is to rebalance, or did; generations are None where the coordinator does not tell them."""

    group: str
    consumer_id: str
    group_instance_id: str | None
    host: str | None
    client_id: str | None
    method: str
    generation_before: int | None = None
    generation_after: int | None = None
    stable_after_ms: int | None = None
    status: str = PLANNED
    error: RowError | None = None


@dataclass(frozen=True, slots=True)
class OffsetChange:
    """A committed offset to forget, or that was forgotten. Without a partition it stands for a topic that has none."""

    group: str
    topic: str
    partition: int | None
    old_offset: int | None
    status: str = PLANNED
    error: RowError | None = None


@dataclass(frozen=True, slots=True)
class TopicChange:
    """A topic that was made, or is to be deleted; None where the broker decides or does not say."""

    topic: str
    partitions: int | None
    replicas: int | None
    status: str = PLANNED
    error: RowError | None = None
