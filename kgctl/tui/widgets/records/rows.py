"""The rows of the table of records: records, the gaps between them, and where groups are."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from broker.light_dataclasses import dataclass
from kgctl.model.browsed import BrowsedRecord, Gap, RecordsPage
from kgctl.model.failure import RowError
from kgctl.model.peek import ABORTED, OPEN
from kgctl.tui import cells
from kgctl.tui.widgets.frame import glyphs
from kgctl.tui.widgets.frame.looks import Look
from kgctl.tui.widgets.records.contents import brief
from kgctl.tui.widgets.table.columns import Column
from kgctl.watch.figures import counted

PLAIN, NEXT = Look(" ", ""), Look(glyphs.RIGHT, "strong")
MISSING, BROKEN = Look(glyphs.ELLIPSIS, "dim"), Look(glyphs.FAULT, "bad")
WAITING, SKIPPED = Look(glyphs.JUDGING, "warn"), Look(glyphs.UNUSED, "dim")


@dataclass(frozen=True, slots=True)
class RecordRow:
    """A record, a gap, or the error that ends the page. `is_next`: where the position is; `readers` are the groups that read it next."""

    offset: int
    record: BrowsedRecord | None = None
    gap: Gap | None = None
    error: RowError | None = None
    is_next: bool = False
    readers: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        return "error" if self.error else str(self.offset)


def rows_of(page: RecordsPage, committed: Mapping[str, int]) -> list[RecordRow]:
    """`committed` has the committed offsets of groups: each reads the first record from there on next."""
    offsets = [record.offset for record in page.records]
    next_offset = next((offset for offset in offsets if offset >= page.position), None)
    readers: dict[int, list[str]] = {}
    for group, position in sorted(committed.items()):
        at = next((offset for offset in offsets if offset >= position), None)
        # A group that is before this page has not got to its first record.
        if at is not None and (at > offsets[0] or position == at):
            readers.setdefault(at, []).append(group)
    rows = [
        RecordRow(one.offset, one, is_next=one.offset == next_offset, readers=tuple(readers.get(one.offset, ())))
        for one in page.records
    ]
    rows += [RecordRow(gap.first, gap=gap) for gap in page.gaps]
    rows.sort(key=lambda row: row.offset)
    if page.error is not None:
        rows.append(RecordRow(offsets[-1] + 1 if offsets else page.position, error=page.error))
    return rows


def look_of(row: RecordRow) -> Look:
    if row.error is not None:
        return BROKEN
    if row.record is None:
        return MISSING
    if row.is_next:
        return NEXT
    return {OPEN: WAITING, ABORTED: SKIPPED}.get(row.record.transaction or "", PLAIN)


def columns() -> list[Column[RecordRow]]:
    return [
        Column("offset", "OFFSET", _offset, 9, right=True, style=_style, order=lambda row: row.offset),
        Column("time", "TIME (UTC)", _time, 14, style=lambda _: "dim", priority=4),
        Column("key", "KEY", _key, 8, flex=2, most=40, style=_style),
        Column("value", "VALUE", _value, 20, flex=8, most=400, style=_style),
        Column("headers", "HDRS", _headers, 4, right=True, style=lambda _: "dim", priority=6),
        Column("size", "SIZE", _size, 6, right=True, style=lambda _: "dim", priority=3),
        Column("note", "NOTE", _note, 14, flex=2, most=30, style=_note_style, priority=2),
    ]


def gap_text(gap: Gap) -> str:
    """What became of the offsets."""
    compacted = gap.offsets - gap.markers
    parts = (
        ["end of a transaction" if gap.markers == 1 else f"ends of {gap.markers:,} transactions"] if gap.markers else []
    )
    parts += [f"{counted(compacted, 'offset')} compacted"] if compacted else []
    return ", ".join(parts)


def moment(ms: int | None, *, exact: bool = False) -> str:
    """A time of a record, which a client may have set to anything."""
    if ms is None:
        return "-"
    try:
        found = datetime.fromtimestamp(ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return str(ms)
    return f"{found:%Y-%m-%d %H:%M:%S}.{ms % 1000:03} UTC" if exact else f"{found:%m-%d %H:%M:%S}"


def _offset(row: RecordRow) -> str:
    return "" if row.error else str(row.offset)


def _time(row: RecordRow) -> str:
    return moment(row.record.timestamp) if row.record else ""


def _key(row: RecordRow) -> str:
    return brief(row.record.key) if row.record else ""


def _value(row: RecordRow) -> str:
    if row.error is not None:
        return cells.name(row.error.message)
    return gap_text(row.gap) if row.gap else brief(row.record.value) if row.record else ""


def _headers(row: RecordRow) -> str:
    return str(len(row.record.headers)) if row.record and row.record.headers else ""


def _size(row: RecordRow) -> str:
    return cells.size(row.record.value.size) if row.record and row.record.value else ""


def _note(row: RecordRow) -> str:
    """What sets the record apart: an open or aborted transaction, and the groups that read it next."""
    outcome = row.record.transaction if row.record else None
    parts = [outcome] if outcome in (OPEN, ABORTED) else []
    if row.readers:
        first, *others = row.readers
        parts.append(f"for {cells.name(first)}" + (f" +{len(others)}" if others else ""))
    return ", ".join(parts)


def _style(row: RecordRow) -> str:
    if row.error is not None:
        return "bad"
    if row.record is None or row.record.transaction == ABORTED:
        return "dim"
    return "strong" if row.is_next else ""


def _note_style(row: RecordRow) -> str:
    if row.record is not None and row.record.transaction == OPEN:
        return "warn"
    return "strong" if row.readers else "dim"
