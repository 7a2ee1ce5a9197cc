"""The screen of contexts: which clusters there are, whether they can be reached, and which one the dashboard shows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from kgctl.client.net.errors import KgctlError
from kgctl.model.contexts import ContextRow
from kgctl.tui import cells, command_line
from kgctl.tui.feed.contexts import Contexts, ContextsNow, ContextTest
from kgctl.tui.feed.read import NotRecorded
from kgctl.tui.screens.polled import PolledScreen
from kgctl.tui.widgets.contexts.detail import settings, steps, tested_at
from kgctl.tui.widgets.contexts.table import ContextLine, Outcome, Test, columns, fields, look
from kgctl.tui.widgets.frame.panel import Panel
from kgctl.tui.widgets.frame.shelf import Shelf
from kgctl.tui.widgets.frame.table_panel import TablePanel
from kgctl.tui.widgets.table.rows import Rows
from kgctl.tui.widgets.text.entries import Entries

EMPTY = "No contexts. `kgctl context add NAME --bootstrap HOST:PORT` makes one."
# The lines of the table beside its rows, and the fewest of the panels below it.
AROUND_ROWS, LEAST_BELOW = 3, 10


class ContextsScreen(PolledScreen[ContextsNow]):
    DEFAULT_CSS = """
    ContextsScreen #below { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("c", "test", "Test", tooltip="Test the connection of this context, step by step"),
        Binding("C", "test_all", "Test all", tooltip="Test the connections of all contexts"),
        Binding("escape", "back", "Back", show=False),
    ]
    HINTS: ClassVar[Sequence[tuple[str, str]]] = (("enter", "switch"), ("1-3", "zoom"), ("tab", "next"))

    def __init__(self) -> None:
        super().__init__("Contexts")
        self._found = ContextsNow()
        self._outcomes: dict[str, Outcome] = {}
        self.panel: TablePanel[ContextLine] = TablePanel(
            "Contexts",
            columns(),
            key=lambda line: line.key,
            name=lambda line: line.name,
            fields=fields(),
            look=look,
            empty=EMPTY,
            number=1,
            id="contexts-table",
        )
        self.steps, self.settings = Entries(), Entries()
        self._connection = Panel("Connection", self.steps, number=2, least=(40, 4))
        self._settings = Panel("Settings", self.settings, number=3, least=(56, 4))

    def contents(self) -> ComposeResult:
        yield self.panel
        with Shelf(id="below"):
            yield self._connection
            yield self._settings

    def focus_first(self) -> None:
        self.set_focus(self.panel.table)

    async def ask(self) -> ContextsNow:
        feed = self.dashboard.feed
        found = await feed.read(Contexts())
        if self.dashboard.replay is not None:
            for row in found.rows:
                outcome = await self._outcome(row.context)
                self._outcomes[row.context] = None if isinstance(outcome, NotRecorded) else outcome
        return found

    def answered(self, answer: ContextsNow) -> None:
        self._found = answer
        self._show()

    def copied_command(self, row: ContextLine) -> str:
        return command_line.line(["kgctl", "context", "show", row.key]) if row.row is not None else ""

    # ---- contents

    def _lines(self) -> list[ContextLine]:
        dashboard = self.dashboard
        shown = dashboard.feed.cluster
        found = [self._line(row, shown.context) for row in self._found.rows]
        home = dashboard.home
        if home.context is None:
            found.insert(0, ContextLine(None, home.address, shown.context is None))
        return found

    def _line(self, row: ContextRow, shown: str | None) -> ContextLine:
        return ContextLine(row, row.bootstrap, row.context == shown, self._outcomes.get(row.context))

    def _show(self) -> None:
        lines = self._lines()
        note = cells.name(self._found.note) if self._found.note else ""
        self.panel.show(lines, note=note)
        self._fit(len(lines))
        self._show_detail()

    def _fit(self, lines: int) -> None:
        """Give the table the lines that it needs, and the rest to the panels below it."""
        below, room = self.query_one("#below"), self.query_one("#contents").size.height
        if self.zoom.panel is not None:
            below.styles.clear_rule("height")
        elif room > 0:
            below.styles.height = max(room - lines - AROUND_ROWS, LEAST_BELOW)

    def _show_detail(self) -> None:
        line = self.panel.table.cursor_row
        self.steps.show(steps(line))
        self.settings.show(settings(self._found.settings.get(line.key, ()) if line is not None else ()))
        name = cells.name(line.name) if line is not None else ""
        at_ms = tested_at(line)
        tested = f"tested {time.strftime('%H:%M:%S', time.localtime(at_ms / 1000))}" if at_ms is not None else ""
        self._connection.show_title("Connection", name, note=tested)
        self._settings.show_title("Settings", name)

    def on_rows_moved(self, event: Rows.Moved) -> None:
        self._show_detail()

    def on_resize(self) -> None:
        self.call_after_refresh(self._show)

    # ---- keys

    def action_zoom(self, number: int) -> None:
        super().action_zoom(number)
        self._show()

    def action_test(self) -> None:
        line = self.panel.table.cursor_row
        if line is not None and line.row is not None:
            self._test(line.key)

    def action_test_all(self) -> None:
        for line in self.panel.table.rows:
            if line.row is not None:
                self._test(line.key)

    def _test(self, name: str) -> None:
        if self._outcomes.get(name) is not Test.UNDER_WAY:
            self._outcomes[name] = Test.UNDER_WAY
            self._show()
            self.run_beside(lambda: self._tested(name), self._show)

    async def _tested(self, name: str) -> None:
        self._outcomes[name] = await self._outcome(name)

    async def _outcome(self, name: str) -> Outcome:
        try:
            found = await self.dashboard.feed.read(ContextTest(name))
        except KgctlError as error:
            return error
        return found

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        line: ContextLine = event.row
        if line.is_shown:
            self.action_back()
        else:
            self.dashboard.switch_to(line.row.context if line.row is not None else None)

    def action_back(self) -> None:
        self.app.pop_screen()
