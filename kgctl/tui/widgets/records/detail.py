"""One record as a whole: its metadata, headers, key and value."""

from __future__ import annotations

from collections.abc import Iterator

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from kgctl.model.browsed import BrowsedRecord, Gap, Payload
from kgctl.tui import cells
from kgctl.tui.widgets.frame.panel import Panel
from kgctl.tui.widgets.records.contents import Form, brief, kind_of, lines
from kgctl.tui.widgets.records.rows import RecordRow, gap_text, moment


class RecordDetail(Panel):
    DEFAULT_CSS = """
    RecordDetail VerticalScroll { height: 1fr; scrollbar-size-vertical: 1; background: $surface; }
    RecordDetail Static { height: auto; }
    """

    def __init__(self, number: int) -> None:
        super().__init__("Record", number=number, id="record")
        self._text = Static("", markup=False)
        self._shown: object = None

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield self._text

    def show(self, row: RecordRow | None, form: Form) -> None:
        if (row, form) == self._shown:
            return
        self._shown = (row, form)
        record = row.record if row else None
        self.show_title(
            f"Record {record.offset:,}" if record else "Record", *(_facts(record) if record else ()), note=f"v {form}"
        )
        self._text.update(_text(row, form))
        self.query_one(VerticalScroll).scroll_home(animate=False)


def _facts(record: BrowsedRecord) -> list[str]:
    found = [moment(record.timestamp, exact=True)] if record.timestamp is not None else []
    found += [cells.name(record.kind)] if record.kind else []
    return found + ([f"transaction {record.transaction}"] if record.transaction else [])


def _text(row: RecordRow | None, form: Form) -> Content:
    if row is None:
        return Content()
    if row.record is None:
        return Content(_gap(row.gap) if row.gap else cells.name(row.error.message) if row.error else "")
    record = row.record
    parts = [*_part("key", record.key, form), *_part("value", record.value, form)]
    if record.headers:
        parts.append(Content.styled(f"headers {len(record.headers):,}", "bold $text-muted"))
        parts += [
            Content.assemble((f"  {cells.name(one.name)} ", "$text-muted"), brief(one.value)) for one in record.headers
        ]
    return Content("\n").join(parts)


def _gap(gap: Gap) -> str:
    where = f"offset {gap.first:,}" if gap.offsets == 1 else f"offsets {gap.first:,} to {gap.last:,}"
    return f"No record at {where}: {gap_text(gap)}."


def _part(title: str, payload: Payload | None, form: Form) -> Iterator[Content]:
    size = f" \u00b7 {payload.size:,} B" if payload else ""
    yield Content.styled(f"{title} \u00b7 {kind_of(payload)}{size}", "bold $text-muted")
    for line in lines(payload, form) if payload else ():
        yield Content(f"  {line}")
