"""Rows about changes: what a plan would do, and the outcome."""

from __future__ import annotations

from broker.light_dataclasses import dataclass
from kgctl.model.failure import RowError
from kgctl.model.groups import EMPTY_STATES, MemberRow, TopicPartitions

# Skipped: part of a plan that was not applied because another row had an error.
PLANNED, DONE, FAILED, SKIPPED = "planned", "done", "failed", "skipped"
# How a rebalance is triggered, and what each member did then.
TRIGGER, EVICTION = "trigger", "eviction"
REJOINED, JOINED, GONE = "rejoined", "joined", "gone"


@dataclass(frozen=True, slots=True)
class ResetRow:
    """One committed offset to move. `delta` counts the records to read again (negative) or to skip.

    Without a partition, a topic that does not exist. Timestamps, in ms since 1970, are those of the records at the old and
    the new offset, where they are known.
    """

    group: str
    topic: str
    partition: int | None
    old_offset: int | None
    new_offset: int | None
    delta: int | None
    old_timestamp: int | None = None
    new_timestamp: int | None = None
    note: str | None = None
    status: str = PLANNED
    error: RowError | None = None


@dataclass(frozen=True, slots=True)
class ResetPlan:
    """`state` is None if the group does not exist. An error is about the whole plan: it cannot be made or applied."""

    group: str
    state: str | None
    rows: tuple[ResetRow, ...]
    type: str | None = None
    members: tuple[MemberRow, ...] = ()
    error: RowError | None = None

    @property
    def is_active(self) -> bool:
        """Whether the group has members, so that the plan cannot be applied."""
        return self.state not in (None, *EMPTY_STATES)

    @property
    def failed(self) -> bool:
        return self.error is not None or any(row.error for row in self.rows)


@dataclass(frozen=True, slots=True)
class ResetSummary:
    """The rows of one topic in a large plan. An error is that of the group or of the first row that failed."""

    group: str
    topic: str
    partitions: int
    records_to_reread: int
    records_to_skip: int
    status: str = PLANNED
    error: RowError | None = None


@dataclass(frozen=True, slots=True)
class GroupChange:
    """A group to delete or deleted."""

    group: str
    state: str | None
    status: str = PLANNED
    error: RowError | None = None


@dataclass(frozen=True, slots=True)
class MemberChange:
    """A member to remove or removed."""

    group: str
    consumer_id: str
    group_instance_id: str | None
    host: str | None
    client_id: str | None
    status: str = PLANNED
    error: RowError | None = None


@dataclass(frozen=True, slots=True)
class RebalanceRow:
    """A member of a group to rebalance; generations are None if the coordinator does not report them.

    Assignments, and how many partitions the member gained and lost, are None if they are not known, or not yet.
    """

    group: str
    consumer_id: str
    group_instance_id: str | None
    host: str | None
    client_id: str | None
    method: str
    generation_before: int | None = None
    generation_after: int | None = None
    stable_after_ms: int | None = None
    assignment_before: tuple[TopicPartitions, ...] | None = None
    assignment_after: tuple[TopicPartitions, ...] | None = None
    gained: int | None = None
    lost: int | None = None
    status: str = PLANNED
    error: RowError | None = None


@dataclass(frozen=True, slots=True)
class OffsetChange:
    """A committed offset to delete or deleted. Without a partition, a topic that has none; without a topic, a group."""

    group: str
    topic: str | None
    partition: int | None
    old_offset: int | None
    status: str = PLANNED
    error: RowError | None = None


@dataclass(frozen=True, slots=True)
class TopicChange:
    """A topic to create or delete; None where the broker decides or does not report the count."""

    topic: str
    partitions: int | None
    replicas: int | None
    status: str = PLANNED
    error: RowError | None = None
