"""The screen of records: a part of a partition, around what a group has committed or anywhere else."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content

from broker.light_dataclasses import replace
from broker.light_named_tuples import NamedTuple
from kgctl.client.net.errors import BadValue
from kgctl.model.browsed import LogBounds, RecordsPage
from kgctl.model.health import attention
from kgctl.model.peek import OPEN
from kgctl.tui import cells, command_line
from kgctl.tui.feed.read import NotRecorded
from kgctl.tui.feed.records import PAGE, Bounds, Records, newest
from kgctl.tui.feed.topics import Topics
from kgctl.tui.screens.polled import PolledScreen
from kgctl.tui.widgets.frame.looks import verdict
from kgctl.tui.widgets.frame.table_panel import TablePanel
from kgctl.tui.widgets.records.contents import Form, brief
from kgctl.tui.widgets.records.detail import RecordDetail
from kgctl.tui.widgets.records.jump import Destination, JumpBar, parse
from kgctl.tui.widgets.records.note import PositionNote
from kgctl.tui.widgets.records.rows import RecordRow, columns, look_of, rows_of
from kgctl.tui.widgets.table.rows import Rows
from kgctl.watch.cluster import ClusterView

# How old the age of an open transaction may be.
HOLD_S = 10.0


class Answer(NamedTuple):
    """A page with the question that it answers; the user may have asked another one meanwhile."""

    question: Records
    bounds: LogBounds
    page: RecordsPage


class RecordsScreen(PolledScreen[Answer | None]):
    """`question` is what to show; None: the partition where a group is furthest behind, or the first topic."""

    DEFAULT_CSS = """
    RecordsScreen #pages { height: 1fr; }
    RecordsScreen.-wide #pages { layout: horizontal; }
    RecordsScreen.-wide #records { width: 3fr; height: 100%; }
    RecordsScreen.-wide #record { width: 2fr; height: 100%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "jump", "Go to", tooltip="Go to an offset, a time, a group's committed offset, or a partition"),
        Binding("left,h", "page(-1)", "Earlier", tooltip="Earlier records"),
        Binding("right,l", "page(1)", "Later", tooltip="Later records"),
        Binding("c", "committed", "Committed", tooltip="Where the next group is that reads this partition"),
        Binding("e", "end", "End", tooltip="The newest records; they follow the log"),
        Binding("a", "start", "Start", tooltip="The oldest records", show=False),
        Binding("v", "form", "Form", tooltip="Contents as they are best read, as text, or in hex"),
        Binding("left_square_bracket", "partition(-1)", "Previous partition", show=False, key_display="["),
        Binding("right_square_bracket", "partition(1)", "Next partition", show=False, key_display="]"),
        Binding("escape", "app.pop_screen", "Back"),
    ]
    HINTS: ClassVar[Sequence[tuple[str, str]]] = (("enter", "whole record"),)

    def __init__(self, question: Records | None = None) -> None:
        super().__init__(_place(question))
        self.question = question
        self.form = Form.AUTO
        self._page: RecordsPage | None = None
        self._answered: Records | None = None  # the question that the page answers
        self._read_at_s = 0.0
        self._bounds = LogBounds()
        self.note = PositionNote()
        self.records: TablePanel[RecordRow] = TablePanel(
            "Records",
            columns(),
            key=lambda row: row.key,
            name=lambda row: f"{brief(row.record.key)} {brief(row.record.value)}" if row.record else "",
            look=look_of,
            empty="No records here.",
            number=1,
            id="records",
        )
        self.detail = RecordDetail(2)
        self.bar = JumpBar()

    def contents(self) -> ComposeResult:
        yield self.note
        with Vertical(id="pages"):
            yield self.records
            yield self.detail
        yield self.bar

    def focus_first(self) -> None:
        self.records.table.focus()

    def headline(self) -> Sequence[Content]:
        question, view = self.question, self.dashboard.cluster
        if question is None or question.group is None:
            return ()
        row = view.row(question.group) if view else None
        lag = (
            None
            if self._bounds.committed is None or self._bounds.end is None
            else self._bounds.end - self._bounds.committed
        )
        return [*([verdict(row.health)] if row else []), Content(f"lag here {cells.count(lag)}")]

    # ---- data

    async def ask(self) -> Answer | None:
        """The page, read again only if what it depends on has moved: records do not change."""
        if self.question is None:
            self.question = await self._first_question()
        question = self.question
        if question is None:
            return None
        try:
            return await self._answer(question)
        except NotRecorded as error:
            bounds = LogBounds(error=error.as_row())
            return Answer(question, bounds, RecordsPage(question.topic, question.partition, bounds, error=bounds.error))

    async def _answer(self, question: Records) -> Answer:
        bounds = await self.dashboard.feed.read(Bounds(question.topic, question.partition, question.group))
        page = self._page
        is_old = page is not None and page.hold is not None and self._age_s >= HOLD_S
        if page is None or self._answered != question or is_old or _is_outdated(question, page, bounds):
            page = await self.dashboard.feed.read(question)
            self._read_at_s = self.dashboard.now_s()
        return Answer(question, bounds, page)

    @property
    def _age_s(self) -> float:
        return abs(self.dashboard.now_s() - self._read_at_s)

    async def _first_question(self) -> Records | None:
        view = self.dashboard.cluster
        if view is not None and (found := _furthest_behind(view)) is not None:
            return found
        topics = await self.dashboard.feed.read(Topics())
        internal = {row.topic for row in topics.topics if row.internal}
        known = [row for row in topics.partitions if row.partition is not None]
        known.sort(key=lambda row: (row.topic in internal, not row.records, row.topic, row.partition or 0))
        return newest(known[0].topic, known[0].partition or 0) if known else None

    def answered(self, answer: Answer | None) -> None:
        if answer is None or answer.question != self.question:
            return
        is_new = self._answered != answer.question
        self._answered, self._bounds, self._page = answer
        self._show()
        if is_new:
            self._put_cursor()

    def cluster_answered(self, view: ClusterView) -> None:
        if self._page is not None:
            self._show()

    def _put_cursor(self) -> None:
        """On the position, or at the end of the page that leads to it."""
        rows = self.records.table.rows
        at = next((line for line, row in enumerate(rows) if row.is_next), len(rows) - 1)
        self.records.table.go_to(max(0, at))
        # The table has no size yet if this is the first page.
        self.call_after_refresh(self._center)

    def _center(self) -> None:
        table = self.records.table
        table.scroll_to(y=max(0, table.cursor - table.page_lines // 2), animate=False, force=True, immediate=True)

    def _ask_now(self, question: Records) -> None:
        # Whoever asks for something else wants to see it.
        self.is_frozen = False
        self.question = question
        self.polling.now()

    # ---- contents

    def _show(self) -> None:
        page, question = self._page, self.question
        assert page is not None
        assert question is not None
        rows = rows_of(page, self._committed())
        bounds = self._bounds
        name = cells.name(question.topic)
        parts = [f"{name}-{question.partition}", f"offsets {cells.count(bounds.start)} to {cells.count(bounds.end)}"]
        if question.group is not None:
            parts.append(f"{cells.name(question.group)} at {cells.count(bounds.committed)}")
        self.records.show(rows, parts=parts)
        self.note.show(page, question.group)
        self._show_record()

    def _committed(self) -> dict[str, int]:
        """The committed offsets of all groups in this partition."""
        question, view = self.question, self.dashboard.cluster
        assert question is not None
        found = {}
        for name, group in view.snapshot.groups.items() if view else ():
            for row in group.partitions:
                is_here = (row.topic, row.partition) == (question.topic, question.partition)
                if is_here and row.current_offset is not None:
                    found[name] = row.current_offset
        if question.group is not None and self._bounds.committed is not None:
            found[question.group] = self._bounds.committed
        return found

    def _show_record(self) -> None:
        self.detail.show(self.records.table.cursor_row, self.form)

    def copied_name(self, rows: Rows[Any], row: Any) -> str:
        record = row.record if isinstance(row, RecordRow) else None
        return brief(record.key) if record is not None and record.key is not None else ""

    def copied_command(self, row: Any) -> str:
        question = self.question
        if question is None or not isinstance(row, RecordRow) or row.record is None:
            return ""
        return command_line.records_at(self.dashboard.feed.cluster, question.topic, question.partition, row.offset)

    def on_rows_moved(self, event: Rows.Moved) -> None:
        if self.detail.is_mounted:
            self._show_record()

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        self.zoom.toggle(self.detail)

    # ---- keys

    def action_form(self) -> None:
        forms = list(Form)
        self.form = forms[(forms.index(self.form) + 1) % len(forms)]
        self._show_record()

    def action_page(self, by: int) -> None:
        page, question = self._page, self.question
        if page is None or question is None or not page.records:
            return
        if by < 0:
            self._ask_now(replace(_plain(question), offset=page.records[0].offset, before=PAGE, after=0))
        else:
            self._ask_now(replace(_plain(question), offset=page.records[-1].offset + 1, before=0, after=PAGE))

    def action_end(self) -> None:
        if self.question is not None:
            self._ask_now(newest(self.question.topic, self.question.partition))

    def action_start(self) -> None:
        if self.question is not None:
            self._ask_now(replace(_plain(self.question), offset=self._bounds.start or 0, before=0, after=PAGE))

    def action_partition(self, by: int) -> None:
        question, count = self.question, self._bounds.partitions
        if question is None or not count:
            return
        number = (question.partition + by) % count
        is_group = question.group is not None
        self._ask_now(replace(question, partition=number) if is_group else newest(question.topic, number))

    def action_committed(self) -> None:
        question = self.question
        if question is None:
            return
        groups = sorted(self._committed())
        if not groups:
            self.notify(f"No group has a committed offset in {cells.name(question.topic)}-{question.partition}.")
            return
        at = groups.index(question.group) + 1 if question.group in groups else 0
        self._ask_now(Records(question.topic, question.partition, group=groups[at % len(groups)]))

    def action_jump(self) -> None:
        self.bar.open()

    def on_jump_bar_left(self, event: JumpBar.Left) -> None:
        self.records.table.focus()

    def on_jump_bar_submitted(self, event: JumpBar.Submitted) -> None:
        try:
            self._go(parse(event.text, int(time.time() * 1000)))
        except BadValue as error:
            self.bar.refuse(str(error))
            return
        self.bar.close()
        self.records.table.focus()

    def _go(self, to: Destination) -> None:
        question = self.question
        if to.topic is not None and to.partition is not None:
            self._ask_now(newest(to.topic, to.partition))
            return
        if question is None:
            raise BadValue("there is no topic; write TOPIC:PARTITION")
        plain = Records(question.topic, question.partition)
        if to.is_start:
            self.action_start()
        elif to.offset is not None:
            self._ask_now(replace(plain, offset=to.offset))
        elif to.by is not None:
            row = self.records.table.cursor_row
            self._ask_now(replace(plain, offset=max(0, (row.offset if row else 0) + to.by)))
        elif to.time_ms is not None:
            self._ask_now(replace(plain, time_ms=to.time_ms))
        elif to.group is not None:
            self._ask_now(replace(plain, group=to.group))
        else:
            self.action_end()


def _place(question: Records | None) -> str:
    return "Records" if question is None else f"Records of {cells.name(question.topic)}"


def _plain(question: Records) -> Records:
    """The same partition, at the end of its log."""
    return Records(question.topic, question.partition)


def _is_outdated(question: Records, page: RecordsPage, now: LogBounds) -> bool:
    """Whether reading the page again may show something else."""
    was = page.bounds
    if page.error is not None or now.error is not None or now.start != was.start or now.committed != was.committed:
        return True
    if now.stable != was.stable and (page.hold is not None or any(one.transaction == OPEN for one in page.records)):
        return True
    last = page.records[-1].offset if page.records else page.position - 1
    # A page that the end of the log cuts off grows with it.
    is_short = question.after > 0 and last + 1 >= (was.end or 0)
    return now.end != was.end and (question.follows or is_short)


def _furthest_behind(view: ClusterView) -> Records | None:
    """Where the group that needs attention most has the largest lag; None if no group has any."""
    for row in sorted(view.rows, key=lambda row: attention(row.health, row.uncommitted_records or row.lag, row.group)):
        if row.error is None and row.lag:
            partitions = view.snapshot.groups[row.group].partitions
            worst = max(partitions, key=lambda one: one.lag or 0)
            return Records(worst.topic or "", worst.partition or 0, group=row.group)
    return None
