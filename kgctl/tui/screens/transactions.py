"""The screen of transactions: the open ones, those that hang, and who waits for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.worker import Worker

from kgctl.client.net.errors import KgctlError
from kgctl.model.watched_transactions import HANGING, HangingSnapshot, OpenTransaction, TransactionsSnapshot
from kgctl.tui import cells
from kgctl.tui.feed.read import NotRecorded
from kgctl.tui.feed.transactions import MOST, Hanging, Transactions
from kgctl.tui.screens.polled import PolledScreen
from kgctl.tui.widgets.frame.panel import Panel
from kgctl.tui.widgets.frame.table_panel import TablePanel
from kgctl.tui.widgets.table.rows import Rows
from kgctl.tui.widgets.text.entries import Entries
from kgctl.tui.widgets.transactions.detail import command, detail
from kgctl.tui.widgets.transactions.table import columns, fields, look, name
from kgctl.watch.cluster import ClusterView
from kgctl.watch.figures import counted
from kgctl.watch.transactions import open_transactions

# The search asks every partition.
SEARCH_EVERY_S = 60.0
# The lines of the table beside its rows, the fewest of it, and of the panel below it.
AROUND_ROWS, LEAST_LINES, LEAST_BELOW = 3, 5, 11


class TransactionsScreen(PolledScreen[TransactionsSnapshot]):
    DEFAULT_CSS = """
    TransactionsScreen #below { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "app.pop_screen", "Back"),
    ]
    HINTS: ClassVar[Sequence[tuple[str, str]]] = (("enter", "detail"), ("1-2", "zoom"), ("tab", "next"))

    def __init__(self) -> None:
        super().__init__("Transactions")
        self._found: TransactionsSnapshot | None = None
        self._hanging: HangingSnapshot | None = None
        self._search_failed: str | None = None
        self._searched_at_s: float | None = None
        self._searching: Worker[None] | None = None
        self.panel: TablePanel[OpenTransaction] = TablePanel(
            "Open transactions",
            columns(),
            key=lambda row: row.key,
            name=name,
            fields=fields(),
            look=look,
            empty="No open transactions.",
            number=1,
        )
        self.detail = Entries()
        self._below = Panel("Detail", self.detail, number=2, id="detail")

    def contents(self) -> ComposeResult:
        yield self.panel
        yield self._below

    def focus_first(self) -> None:
        self.set_focus(self.panel.table)

    async def ask(self) -> TransactionsSnapshot:
        feed = self.dashboard.feed
        if self.dashboard.replay is not None:
            await self._search()
        return await feed.read(Transactions())

    async def _search(self) -> None:
        """Look for transactions that hang; what was found before stays if that fails."""
        try:
            self._hanging, self._search_failed = await self.dashboard.feed.read(Hanging()), None
        except NotRecorded:
            self._hanging = None
        except KgctlError as error:
            self._search_failed = str(error)
        self._searched_at_s = self.dashboard.now_s()

    def answered(self, answer: TransactionsSnapshot) -> None:
        self._found = answer
        now_s, last_s = self.dashboard.now_s(), self._searched_at_s
        is_due = last_s is None or now_s - last_s >= SEARCH_EVERY_S
        if self.dashboard.replay is None and is_due and (self._searching is None or self._searching.is_finished):
            self._searching = self.run_beside(self._search, self._show)
        self._show()

    def cluster_answered(self, view: ClusterView) -> None:
        self._show()

    def copied_name(self, rows: Rows[Any], row: OpenTransaction) -> str:
        return row.transactional_id or row.partitions[0].topic or ""

    def copied_command(self, row: OpenTransaction) -> str:
        """The command that ends it, as the detail shows it."""
        return command(row, self.dashboard.feed.cluster)

    # ---- contents

    def _show(self) -> None:
        found = self._found
        if found is None:
            return
        view = self.dashboard.cluster
        rows = open_transactions(found, self._hanging, view.snapshot.groups if view is not None else {})
        hanging = sum(row.state == HANGING for row in rows)
        parts = [f"{hanging:,} hanging"] if hanging else []
        if found.total > len(found.rows):
            parts.append(f"the {MOST:,} oldest of {found.total:,}")
        self.panel.show(rows, parts=parts, note=self._note(found))
        self._fit(len(rows))
        self._show_detail()

    def _note(self, found: TransactionsSnapshot) -> str:
        if found.errors:
            return f"some may be missing: {cells.name(found.errors[0].message)}"
        if self._search_failed is not None:
            return f"cannot search hanging ones: {cells.name(self._search_failed)}"
        if self._hanging is None:
            return "" if self.dashboard.replay is not None else "searching hanging ones \u2026"
        failed = [row.error for row in self._hanging.rows if row.error is not None]
        return f"{counted(len(failed), 'partition')} not searched: {cells.name(failed[0].message)}" if failed else ""

    def _fit(self, lines: int) -> None:
        """Give the table the lines that it needs, and the rest to the detail."""
        room = self.query_one("#contents").size.height
        if self.zoom.panel is not None:
            self._below.styles.clear_rule("height")
        elif room > 0:
            self._below.styles.height = max(room - max(LEAST_LINES, lines + AROUND_ROWS), LEAST_BELOW)

    def _show_detail(self) -> None:
        row = self.panel.table.cursor_row
        self._below.show_title(name(row) if row is not None else "Detail")
        self.detail.show(detail(row, self.dashboard.feed.cluster))

    def on_rows_moved(self, event: Rows.Moved) -> None:
        self._show_detail()

    def on_resize(self) -> None:
        self.call_after_refresh(self._show)

    # ---- keys

    def action_zoom(self, number: int) -> None:
        super().action_zoom(number)
        self._show()

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        self.action_zoom(2)
