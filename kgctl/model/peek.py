"""Rows about the records around committed offsets."""

from __future__ import annotations

from broker.light_dataclasses import dataclass
from kgctl.model.failure import RowError

BEFORE, NEXT, AFTER = "before", "next", "after"
COMMITTED, ABORTED, OPEN = "committed", "aborted", "open"


@dataclass(frozen=True, slots=True)
class PeekedHeader:
    key: str
    value: str | None
    value_base64: str | None = None


@dataclass(frozen=True, slots=True)
class PeekRow:
    """A record before or after a committed offset, or without an offset, a partition that has none to show.

    `position` "next" is the first record that the group has not read. What is not UTF-8 is in the fields in base64.
    `transaction` is None for a record outside of transactions; "open" also if an older open transaction hides the outcome.
    `note` says what is special about the committed offset; the next record has it, or the only row.
    """

    group: str
    topic: str
    partition: int
    committed_offset: int | None
    position: str | None = None
    offset: int | None = None
    timestamp: int | None = None
    key: str | None = None
    value: str | None = None
    headers: tuple[PeekedHeader, ...] = ()
    transaction: str | None = None
    key_base64: str | None = None
    value_base64: str | None = None
    note: str | None = None
    error: RowError | None = None
