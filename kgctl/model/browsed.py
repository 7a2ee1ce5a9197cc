"""Rows about the records of a partition, as people browse them."""

from __future__ import annotations

from broker.light_dataclasses import dataclass
from kgctl.model.failure import RowError
from kgctl.model.transactions import Hold


@dataclass(frozen=True, slots=True)
class Payload:
    """A key, a value, or the value of a header: its size in bytes, and its first bytes in base64.

    `decoded` is JSON that says what the bytes mean, for records of internal topics.
    """

    size: int
    base64: str
    decoded: str | None = None


@dataclass(frozen=True, slots=True)
class BrowsedHeader:
    name: str
    value: Payload | None


@dataclass(frozen=True, slots=True)
class BrowsedRecord:
    """`timestamp` is in ms since 1970; `transaction` is as in PeekRow; `kind` says what a record of an internal topic is."""

    offset: int
    timestamp: int | None
    key: Payload | None
    value: Payload | None
    headers: tuple[BrowsedHeader, ...] = ()
    transaction: str | None = None
    kind: str | None = None


@dataclass(frozen=True, slots=True)
class Gap:
    """Offsets without a record: `markers` of them end transactions, compaction removed the others."""

    first: int
    last: int
    markers: int

    @property
    def offsets(self) -> int:
        return self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class LogBounds:
    """Where a partition starts, is stable and ends, and the committed offset of the group that was asked for.

    `partitions` is how many the topic has.
    """

    start: int | None = None
    stable: int | None = None
    end: int | None = None
    committed: int | None = None
    partitions: int | None = None
    error: RowError | None = None


@dataclass(frozen=True, slots=True)
class RecordsPage:
    """Records of a partition around `position`, in their order.

    `note` says what is special about the position. `hold` is the open transaction that read_committed readers wait for.
    `error` says why there are no more records, or why the partition cannot be read.
    """

    topic: str
    partition: int
    bounds: LogBounds
    position: int = 0
    records: tuple[BrowsedRecord, ...] = ()
    gaps: tuple[Gap, ...] = ()
    note: str | None = None
    hold: Hold | None = None
    error: RowError | None = None
