"""What fills the screen until a broker has answered: who is asked, what went wrong, what to do."""

from __future__ import annotations

from rich.text import Text
from textual.app import RenderResult
from textual.widget import Widget

from kgctl.tui import cells
from kgctl.tui.polling import Freshness


class Unreachable(Widget):
    DEFAULT_CSS = """
    Unreachable { height: 1fr; padding: 2 4; color: $foreground; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._text = Text()

    def tell(self, cluster: str, fresh: Freshness, now_s: float) -> None:
        if not self.display:
            return
        if fresh.error is None:
            self._text = Text(f"Asking {cells.name(cluster)} \u2026")
            self.refresh()
            return
        wait_s = max(0.0, fresh.next_at_s - now_s)
        again = (
            "Trying again now." if wait_s < 0.05 else f"Trying again in {cells.duration(float(round(wait_s + 0.5)))}."
        )
        self._text = Text.assemble(
            (f"No answer from {cells.name(cluster)}", "bold"),
            "\n\n",
            cells.name(str(fresh.error)),
            "\n\n",
            f"{again} Attempts: {fresh.attempts}.",
            "\n\n",
            "Start a local broker with `kgctl broker start`, or name a cluster with `kgctl ui --bootstrap HOST:PORT`.\n",
            "ctrl+r tries at once, q ends.",
        )
        self.refresh()

    def render(self) -> RenderResult:
        return self._text
