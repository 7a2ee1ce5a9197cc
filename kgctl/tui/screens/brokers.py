"""The screen of brokers: which answer, what they lead and coordinate, and what our own broker counts about itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.worker import Worker

from kgctl.client.net.errors import KgctlError
from kgctl.model.findings import ClusterFinding
from kgctl.model.watched_brokers import BrokerDetails, BrokerFigures, BrokersSnapshot, RequestFigures
from kgctl.tui import cells, command_line
from kgctl.tui.feed.brokers import Brokers, Details
from kgctl.tui.feed.read import NotRecorded
from kgctl.tui.screens.polled import PolledScreen
from kgctl.tui.widgets.brokers.detail import detail
from kgctl.tui.widgets.brokers.table import (
    BrokerLine,
    broker_columns,
    broker_fields,
    broker_look,
    finding_columns,
    finding_look,
    request_columns,
)
from kgctl.tui.widgets.frame.header import facts_of
from kgctl.tui.widgets.frame.panel import Panel
from kgctl.tui.widgets.frame.shelf import Shelf
from kgctl.tui.widgets.frame.table_panel import TablePanel
from kgctl.tui.widgets.table.rows import Rows
from kgctl.tui.widgets.text.entries import Entries
from kgctl.watch.brokers import BrokersWatch
from kgctl.watch.cluster import ClusterView

DETAILS_EVERY_S = 15.0
# The lines of a table beside its rows; the most rows of the findings; the fewest lines of what is between, and those of a
# broker without counters.
AROUND_ROWS, MOST_FINDINGS, LEAST_BETWEEN, FACTS = 3, 6, 8, 11
SINCE_START = "since the start"


class BrokersScreen(PolledScreen[BrokersSnapshot]):
    DEFAULT_CSS = """
    BrokersScreen #between { height: 1fr; }
    BrokersScreen #requests { width: 11fr; }
    BrokersScreen #broker { width: 9fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "app.pop_screen", "Back")]
    HINTS: ClassVar[Sequence[tuple[str, str]]] = (("1-4", "zoom"), ("tab", "next"))

    def __init__(self) -> None:
        super().__init__("Brokers")
        self._found: BrokersSnapshot | None = None
        self._figures: Mapping[int, BrokerFigures] = {}
        self._watch = BrokersWatch()
        self._details: BrokerDetails | None = None
        self._details_failed: str | None = None
        self._details_at_s: float | None = None
        self._reading: Worker[None] | None = None
        self.brokers: TablePanel[BrokerLine] = TablePanel(
            "Brokers",
            broker_columns(),
            key=lambda line: line.key,
            name=lambda line: line.seen.address,
            fields=broker_fields(),
            look=broker_look,
            number=1,
            id="brokers",
        )
        self.requests: TablePanel[RequestFigures] = TablePanel(
            "Requests",
            request_columns(),
            key=lambda row: row.name,
            empty="This broker reports no counters.",
            number=2,
            least=(56, 6),
            id="requests",
        )
        self.detail = Entries()
        self._broker = Panel("Broker", self.detail, number=3, least=(40, 4), id="broker")
        self.findings: TablePanel[ClusterFinding] = TablePanel(
            "Doctor",
            finding_columns(),
            key=lambda row: f"{row.check} {row.subject} {row.evidence}",
            name=lambda row: f"{row.check} {row.subject} {row.evidence}",
            look=finding_look,
            empty="Nothing found.",
            number=4,
            id="findings",
        )

    def contents(self) -> ComposeResult:
        yield self.brokers
        with Shelf(id="between"):
            yield self.requests
            yield self._broker
        yield self.findings

    def focus_first(self) -> None:
        self.set_focus(self.brokers.table)

    def facts(self) -> Sequence[str]:
        found = self._found
        count = len(found.brokers) if found is not None else None
        return facts_of(self.dashboard.feed.cluster, count, found.topics if found is not None else None)

    async def ask(self) -> BrokersSnapshot:
        if self.dashboard.replay is not None:
            await self._read_details()
        return await self.dashboard.feed.read(Brokers())

    async def _read_details(self) -> None:
        """Read what changes slowly; what was known before stays if that fails."""
        try:
            self._details, self._details_failed = await self.dashboard.feed.read(Details()), None
        except NotRecorded:
            self._details = None
        except KgctlError as error:
            self._details_failed = str(error)
        self._details_at_s = self.dashboard.now_s()

    def answered(self, answer: BrokersSnapshot) -> None:
        if answer is not self._found:
            self._found, self._figures = answer, self._watch.add(answer)
        now_s, last_s = self.dashboard.now_s(), self._details_at_s
        is_due = last_s is None or now_s - last_s >= DETAILS_EVERY_S
        if self.dashboard.replay is None and is_due and (self._reading is None or self._reading.is_finished):
            self._reading = self.run_beside(self._read_details, self._show)
        self._show()

    def cluster_answered(self, view: ClusterView) -> None:
        self._show()

    def copied_command(self, row: Any) -> str:
        verb = "doctor" if isinstance(row, ClusterFinding) else "describe"
        return command_line.of_cluster(self.dashboard.feed.cluster, verb)

    # ---- contents

    def _lines(self, found: BrokersSnapshot) -> list[BrokerLine]:
        view, details = self.dashboard.cluster, self._details
        groups = Counter(one.coordinator_id for one in view.snapshot.groups.values()) if view is not None else None
        rows = {row.broker: row for row in details.rows} if details is not None else {}
        return [
            BrokerLine(
                seen,
                None if groups is None else groups[seen.broker],
                rows.get(seen.broker),
                tuple(one for one in details.log_dirs if one.broker == seen.broker) if details is not None else (),
                self._figures.get(seen.broker),
            )
            for seen in found.brokers
        ]

    def _show(self) -> None:
        found = self._found
        if found is None:
            return
        lines = self._lines(found)
        lost = sum(line.seen.error is not None for line in lines)
        parts = [f"{lost:,} not reached"] if lost else []
        note = f"no details: {cells.name(self._details_failed)}" if self._details_failed else ""
        self.brokers.show(lines, parts=parts, note=note or f"{found.partitions:,} partitions, internal ones included")
        self.findings.show(found.findings)
        self._fit(len(lines), len(found.findings))
        self._show_broker()

    def _fit(self, brokers: int, findings: int) -> None:
        """Give the tables the lines that they need, and the rest to what is between."""
        room = self.query_one("#contents").size.height
        between = self.query_one("#between")
        is_zoomed = self.zoom.panel is not None
        for widget in (self.brokers, self.findings, between):
            widget.styles.clear_rule("height")
        # Only our broker has counters.
        self.requests.display = is_zoomed or bool(self._figures)
        between.display = is_zoomed or bool(self._figures) or brokers + AROUND_ROWS + LEAST_BETWEEN <= room
        self.findings.display = is_zoomed or bool(findings) or not self._figures
        if is_zoomed or room <= 0:
            return
        below = min(findings, MOST_FINDINGS) + AROUND_ROWS if findings else 0
        self.brokers.styles.height = min(brokers + AROUND_ROWS, max(AROUND_ROWS + 1, room - below - LEAST_BETWEEN))
        if self._figures:
            self.findings.styles.height = below
        else:
            between.styles.height = FACTS

    def _show_broker(self) -> None:
        line = self.brokers.table.cursor_row
        figures = line.figures if line is not None else None
        name = f"broker {line.key}" if line is not None else ""
        span = "" if figures is None else SINCE_START
        if figures is not None and figures.seconds is not None:
            span = f"last {cells.duration(figures.seconds)}"
        self.requests.show(figures.requests if figures is not None else (), parts=[name] if name else [], note=span)
        self._broker.show_title(name or "Broker")
        self.detail.show(detail(line))

    def on_rows_moved(self, event: Rows.Moved) -> None:
        if event.rows is self.brokers.table:
            self._show_broker()

    def on_resize(self) -> None:
        self.call_after_refresh(self._show)

    # ---- keys

    def action_zoom(self, number: int) -> None:
        super().action_zoom(number)
        self._show()
