"""Rows about records to delete from the beginning of partitions."""

from __future__ import annotations

from broker.light_dataclasses import dataclass
from kgctl.model.changes import PLANNED
from kgctl.model.failure import RowError


@dataclass(frozen=True, slots=True)
class GroupBelow:
    """A group whose committed offset the deletion leaves below the log start, and how many offsets it then skips."""

    group: str
    offset: int
    skipped: int


@dataclass(frozen=True, slots=True)
class RecordDeletion:
    """The records before `new_start_offset` go. `records` counts offsets, `estimated_bytes` is their share of the log's size.

    Unknown values are None; so is the new start until a time or the end of the log has been looked up.
    """

    topic: str
    partition: int | None
    log_start_offset: int | None = None
    new_start_offset: int | None = None
    log_end_offset: int | None = None
    records: int | None = None
    estimated_bytes: int | None = None
    groups: tuple[GroupBelow, ...] = ()
    status: str = PLANNED
    error: RowError | None = None
