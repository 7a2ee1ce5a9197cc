"""What all screens have that watch something: a first line, polling while they are on top, a clear word when nobody answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import Screen
from textual.widgets import Footer
from textual.worker import Worker

from kgctl.client.net.errors import KgctlError
from kgctl.tui.polling import Polling
from kgctl.tui.widgets.status import Status
from kgctl.tui.widgets.unreachable import Unreachable

if TYPE_CHECKING:
    from kgctl.tui.app import KgctlApp

T = TypeVar("T")
TICK_S = 0.5


class Watching(Screen[None], Generic[T]):
    """A screen gives `place`, `contents`, `ask` and `answered`."""

    DEFAULT_CSS = """
    Watching { background: $surface; color: $foreground; }
    Watching #contents { height: 1fr; }
    Watching Footer { background: $panel; color: $foreground; }
    """
    AUTO_FOCUS = ""

    def __init__(self, place: str) -> None:
        super().__init__()
        self.place = place
        self.polling: Polling[T] = Polling(
            self.ask, self._heard, self._lost, lambda: self.kgctl.interval_s, lambda: self.kgctl.clock()
        )
        self._worker: Worker[None] | None = None

    @property
    def kgctl(self) -> KgctlApp:
        from kgctl.tui.app import KgctlApp

        assert isinstance(self.app, KgctlApp)
        return self.app

    # ---- what a screen gives

    def contents(self) -> ComposeResult:
        """What stands between the first line and the keys."""
        raise NotImplementedError

    async def ask(self) -> T:
        """One question to the feed."""
        raise NotImplementedError

    def answered(self, answer: T) -> None:
        """Show it."""
        raise NotImplementedError

    # ---- what all have

    def compose(self) -> ComposeResult:
        yield Status(self.place)
        yield Unreachable()
        with Vertical(id="contents"):
            yield from self.contents()
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        self._shown(False)
        self.set_interval(TICK_S, self._tick_on_top)
        self.tick()

    def on_screen_resume(self) -> None:
        self.polling.is_paused = self.kgctl.is_paused
        if self._worker is None:
            self._worker = self.run_worker(self.polling.run, exit_on_error=True)

    def on_screen_suspend(self) -> None:
        if self._worker is not None:
            self._worker.cancel()
            self._worker = None

    def _tick_on_top(self) -> None:
        # What changes on a covered screen would have all of the one above it drawn again.
        if self.app.screen is self:
            self.tick()

    def tick(self) -> None:
        """The age of what is shown goes on by itself."""
        app, polling = self.kgctl, self.polling
        now_s = app.clock()
        self.query_one(Status).tell(
            app.feed.name,
            polling.freshness,
            now_s,
            app.interval_s,
            paused=app.is_paused,
            read_only=app.read_only,
        )
        self.query_one(Unreachable).tell(app.feed.name, polling.freshness, now_s)

    def _heard(self, answer: T) -> None:
        self._shown(True)
        self.answered(answer)
        self.tick()
        self.kgctl.has_heard()

    def _lost(self, error: KgctlError) -> None:
        # What was heard before stays on the screen; the first line says how old it is.
        self._shown(self.polling.freshness.heard_at_s is not None)
        self.tick()
        self.kgctl.has_heard()

    def _shown(self, is_known: bool) -> None:
        contents = self.query_one("#contents")
        self.query_one(Unreachable).display = not is_known
        if is_known and not contents.display and self.focused is None:
            self.call_after_refresh(self.focus_next)
        contents.display = is_known
