"""Rows about the rescue of a local broker's data directory."""

from __future__ import annotations

from broker.light_dataclasses import dataclass
from kgctl.model.changes import PLANNED


@dataclass(frozen=True, slots=True)
class RescueRow:
    """A partition to bring back. `lost_offsets` counts acknowledged records that are lost; `note` names their offsets."""

    topic: str
    partition: int
    log_start_offset: int
    log_end_offset: int
    records: int
    size_bytes: int
    lost_offsets: int
    note: str | None = None
    status: str = PLANNED


@dataclass(frozen=True, slots=True)
class RescuedOffsetRow:
    """A committed offset that the new directory does not hold. `committed` is UTC in ISO 8601.

    `note` says why it may not be the newest one, or why the offsets file does not have it.
    """

    group: str
    topic: str
    partition: int
    offset: int
    committed: str
    note: str | None = None
