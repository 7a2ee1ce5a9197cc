"""The base of screens that show a cluster: header, panels that zoom, polling while the screen is on top, an error page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, ClassVar, Generic, TypeVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Input
from textual.worker import Worker

from kgctl.client.net.errors import KgctlError
from kgctl.tui.dashboard import Dashboard
from kgctl.tui.dialogs.copying import Copy, CopyMenu, copies
from kgctl.tui.polling import Polling
from kgctl.tui.widgets.frame.header import Header, facts_of
from kgctl.tui.widgets.frame.key_line import KeyLine
from kgctl.tui.widgets.frame.panel import Panel
from kgctl.tui.widgets.frame.unreachable import Unreachable
from kgctl.tui.widgets.frame.zoom import Zoom
from kgctl.tui.widgets.replay.bar import ReplayBar
from kgctl.tui.widgets.table.rows import Rows
from kgctl.watch.cluster import ClusterView

T = TypeVar("T")
TICK_S = 0.5


class PolledScreen(Screen[None], Generic[T]):
    """A screen implements `contents`, `ask` and `answered`; `place` is its name in the header, `HINTS` begin its last line.

    It has the classes -narrow (below 100 columns), -normal or -wide (from 160), and -low (below 32 lines), -usual or -high
    (from 50), which its style sheet may use.
    """

    DEFAULT_CSS = """
    PolledScreen { background: $surface; color: $foreground; }
    PolledScreen #contents { height: 1fr; }
    """
    AUTO_FOCUS = ""
    HORIZONTAL_BREAKPOINTS: list[tuple[int, str]] | None = [(0, "-narrow"), (100, "-normal"), (160, "-wide")]
    VERTICAL_BREAKPOINTS: list[tuple[int, str]] | None = [(0, "-low"), (32, "-usual"), (50, "-high")]
    HINTS: ClassVar[Sequence[tuple[str, str]]] = ()
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("1", "zoom(1)", "Zoom the panel with this number, or show all panels", show=False, key_display="1-9"),
        *[Binding(str(number), f"zoom({number})", "", show=False) for number in range(2, 10)],
        Binding("tab", "next_panel(1)", "Next panel", show=False),
        Binding("shift+tab", "next_panel(-1)", "Previous panel", show=False),
        Binding("F", "freeze", "Freeze the screen, or show new data again", show=False),
        Binding("y", "copy", "Copy the name, the row or a command", show=False),
    ]

    def __init__(self, place: str) -> None:
        super().__init__()
        self.place = place
        self._polling: Polling[T] = Polling(
            self.ask,
            self._on_answer,
            self._on_failure,
            lambda: self.dashboard.interval_s,
            lambda: self.dashboard.now_s(),
        )
        self._worker: Worker[None] | None = None
        self.zoom = Zoom(self)
        self.is_frozen = False
        self._shown_at_s: float | None = None

    @property
    def polling(self) -> Polling[T]:
        return self._polling

    @property
    def dashboard(self) -> Dashboard:
        return cast(Dashboard, self.app)

    # ---- implemented by each screen

    def contents(self) -> ComposeResult:
        """The widgets between the header and the line of keys: panels, mostly."""
        raise NotImplementedError

    async def ask(self) -> T:
        """Ask the feed once."""
        raise NotImplementedError

    def answered(self, answer: T) -> None:
        """Show the answer."""
        raise NotImplementedError

    def cluster_answered(self, view: ClusterView) -> None:
        """The background has a new view of all groups, while this screen is on top."""

    def cluster_failed(self, error: KgctlError) -> None:
        """The background failed to read all groups, while this screen is on top."""

    def facts(self) -> Sequence[str]:
        """What the header says about the cluster."""
        label, view = self.dashboard.feed.cluster, self.dashboard.cluster
        return facts_of(label, view.snapshot.brokers, view.snapshot.topics) if view is not None else facts_of(label)

    def headline(self) -> Sequence[Content]:
        """What the header says about the subject of the screen instead, the most important first."""
        return ()

    def copied_name(self, rows: Rows[Any], row: Any) -> str:
        """The name of a row of one of the tables of this screen, for the clipboard."""
        return rows.key_of(row)

    def copied_command(self, row: Any) -> str:
        """The command line that shows the same as this row; empty if there is none."""
        return ""

    # ---- common to all

    @property
    def is_open(self) -> bool:
        """Whether the widgets exist: answers also arrive before they are mounted and while they are removed."""
        return self.is_mounted and self.display

    def run_beside(self, read: Callable[[], Awaitable[None]], show: Callable[[], None]) -> Worker[None]:
        """Read what takes long beside the polling, then show it, unless the screen is closed or frozen by then."""

        async def run() -> None:
            await read()
            if self.is_open and not self.is_frozen:
                show()

        return self.run_worker(run(), exit_on_error=True)

    def compose(self) -> ComposeResult:
        yield Header(self.place)
        if self.dashboard.replay is not None:
            yield ReplayBar()
        yield Unreachable()
        with Vertical(id="contents"):
            yield from self.contents()
        yield KeyLine(self.HINTS)

    def on_mount(self) -> None:
        self._show_contents(False)
        self.set_interval(TICK_S, self._tick_on_top)
        self.tick()

    def on_screen_resume(self) -> None:
        self.polling.is_paused = self.dashboard.is_paused
        self.start()

    def start(self) -> None:
        """Begin to poll."""
        if self._worker is None:
            self._worker = self.run_worker(self.polling.run, exit_on_error=True)

    def on_screen_suspend(self) -> None:
        if self._worker is not None:
            self._worker.cancel()
            self._worker = None

    def _tick_on_top(self) -> None:
        # A change on a covered screen would redraw all of the screen above it.
        if self.app.screen is self:
            if self.is_frozen:
                self.show_header()
            else:
                self.tick()

    def tick(self) -> None:
        """Update what changes with time alone, such as durations."""
        self.show_header()

    def show_header(self) -> None:
        """Show how old the data are, and what else the header says."""
        dashboard, polling = self.dashboard, self.polling
        now_s = dashboard.now_s()
        self.query_one(Header).show(
            dashboard.feed.cluster,
            polling.freshness,
            now_s,
            dashboard.interval_s,
            facts=self.facts(),
            headline=self.headline(),
            paused=dashboard.is_paused,
            read_only=dashboard.read_only,
            replay=dashboard.replay,
            frozen_at_s=self._shown_at_s if self.is_frozen else None,
            baseline_ms=dashboard.baseline.wall_ms if dashboard.baseline is not None else None,
        )
        for bar in self.query(ReplayBar):
            bar.show(dashboard.replay_details)
        self.query_one(Unreachable).show(dashboard.feed.cluster, polling.freshness, now_s)

    def hear(self, view: ClusterView) -> None:
        """The background has a new view of all groups."""
        if self.is_open and not self.is_frozen:
            self.cluster_answered(view)

    def _on_answer(self, answer: T) -> None:
        if self.is_frozen or not self.is_open:
            return
        self._shown_at_s = self.polling.freshness.answered_at_s
        self._show_contents(True)
        self.answered(answer)
        self.tick()
        self.dashboard.set_ready()

    def _on_failure(self, error: KgctlError) -> None:
        if not self.is_open:
            return
        is_first = self.polling.freshness.answered_at_s is None
        if error.is_final and is_first and not self.dashboard.has_switched:
            self.dashboard.fail(error)
            return
        # Earlier contents stay on the screen; the header shows how old they are. What does not pass is explained.
        is_known = self.polling.freshness.answered_at_s is not None
        self._show_contents(is_known)
        page = self.query_one(Unreachable)
        page.display = error.is_final or not is_known
        page.set_class(is_known, "-above")
        self.tick()
        self.dashboard.set_ready()

    def _show_contents(self, is_known: bool) -> None:
        contents = self.query_one("#contents")
        self.query_one(Unreachable).display = not is_known
        if is_known and not contents.display and self.focused is None:
            self.call_after_refresh(self.focus_first)
        contents.display = is_known

    # ---- panels

    def focus_first(self) -> None:
        """Put the focus where a user begins."""
        self.focus_next()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "zoom":
            return any(panel.number == parameters[0] for panel in self.query(Panel))
        return super().check_action(action, parameters)

    def action_zoom(self, number: int) -> None:
        self.zoom.toggle(next(panel for panel in self.query(Panel) if panel.number == number))

    def action_next_panel(self, by: int) -> None:
        move = self.focus_next if by > 0 else self.focus_previous
        # `/` leads to the filter of a table; on the way to the next panel it would swallow keys.
        if isinstance(move(), Input):
            move()

    # ---- freezing

    def action_freeze(self) -> None:
        """The screen stands still while the dashboard keeps watching; then it shows the newest data."""
        if self.polling.last is None:
            return
        self.is_frozen = not self.is_frozen
        self.show_again()

    def show_again(self) -> None:
        """Show the newest data, unless the screen is frozen."""
        self.show_header()
        if self.polling.last is not None and not self.is_frozen:
            self._on_answer(self.polling.last)
            if self.dashboard.cluster is not None:
                self.hear(self.dashboard.cluster)

    # ---- copying

    def action_copy(self) -> None:
        tables = [self.focused] if isinstance(self.focused, Rows) else [one for one in self.query(Rows) if one.display]
        rows = next((one for one in tables if one.cursor_row is not None), None)
        if rows is None:
            self.notify("There is nothing to copy here.", markup=False)
            return
        row = rows.cursor_row
        found = copies(rows, self.copied_name(rows, row), self.copied_command(row))
        self.app.push_screen(CopyMenu(found), self._copied)

    def _copied(self, copy: Copy | None) -> None:
        if copy is not None:
            self.app.copy_to_clipboard(copy.text)
            self.notify(f"Copied the {copy.what}.", markup=False)


class ClusterScreen(PolledScreen[ClusterView]):
    """A screen of what the background watches: it shows the newest view at once, and `answered` gets each new one."""

    @property
    def polling(self) -> Polling[ClusterView]:
        return self.dashboard.background.polling

    _was_covered = False

    def start(self) -> None:
        # The first answer may have come before this screen was ready.
        if (view := self.dashboard.background.view) is not None:
            self.cluster_answered(view)
        if (error := self.polling.freshness.error) is not None:
            self.cluster_failed(error)
        if self._was_covered:
            # A dialog may have changed something.
            self.polling.now()
        self._was_covered = True

    def cluster_answered(self, view: ClusterView) -> None:
        self._on_answer(view)

    def cluster_failed(self, error: KgctlError) -> None:
        self._on_failure(error)
