"""Rows of `kgctl pipeline`: jobs, columns, findings of the doctor, tables in a folder."""

from __future__ import annotations

from broker.light_dataclasses import dataclass
from kgctl.model.failure import RowError


@dataclass(frozen=True, slots=True)
class JobRow:
    job: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    summary: str


@dataclass(frozen=True, slots=True)
class ColumnRow:
    table: str
    column: str
    type: str
    meaning: str


@dataclass(frozen=True, slots=True)
class FindingRow:
    """`ok` is None for information that is neither good nor bad; `advice` says what to do."""

    what: str
    found: str
    ok: bool | None
    advice: str | None


@dataclass(frozen=True, slots=True)
class MaintenanceRow:
    """What `pipeline maintain` does with a table: `action` is drop or merge.

    `files` of `days` hold `rows` and `size_bytes` before, and are `files_after` afterwards.
    """

    table: str
    action: str
    days: int
    files: int
    files_after: int
    rows: int
    size_bytes: int
    status: str


@dataclass(frozen=True, slots=True)
class QueryableRow:
    """A table or view for `pipeline sql`."""

    name: str
    meaning: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TableRow:
    """`written` is the time of the last commit, UTC in ISO 8601."""

    table: str
    job: str
    rows: int
    files: int
    size_bytes: int
    batches: int
    written: str | None


@dataclass(frozen=True, slots=True)
class ReplayRow:
    """A topic of an archive on its way to `target`; `left` records are not replayed yet, before key filters.

    `records` and `size_bytes` are those of the archive. Times are milliseconds since 1970, None without records.
    """

    topic: str
    target: str
    partitions: int
    records: int
    left: int
    size_bytes: int
    oldest_ms: int | None = None
    newest_ms: int | None = None
    replayed: int | None = None
    note: str | None = None
    status: str = "planned"
    error: RowError | None = None


@dataclass(frozen=True, slots=True)
class ArchiveFindingRow:
    """`ok` is False for a fault, None for information. Offsets are None if the finding is not about offsets."""

    finding: str
    topic: str | None
    partition: int | None
    first_offset: int | None
    last_offset: int | None
    detail: str
    ok: bool | None
