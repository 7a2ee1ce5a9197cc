"""The page that a screen shows until a broker has answered: which cluster, what failed, what to do."""

from __future__ import annotations

from rich.text import Text
from textual.app import RenderResult
from textual.widget import Widget

from kgctl.tui import cells
from kgctl.tui.cluster_label import ClusterLabel
from kgctl.tui.polling import Freshness

LOCAL = "Start a local broker with `kgctl broker start`, or name a cluster with `kgctl ui --bootstrap HOST:PORT`."
STEPS = "`kgctl context test {}` shows which step of the connection fails."


class Unreachable(Widget):
    DEFAULT_CSS = """
    Unreachable { height: 1fr; padding: 2 4; color: $foreground; }
    Unreachable.-above { height: auto; max-height: 70%; padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._text = Text()

    def show(self, cluster: ClusterLabel, fresh: Freshness, now_s: float) -> None:
        if not self.display:
            return
        if fresh.error is None:
            self._text = Text(f"Connecting to {cells.name(_called(cluster))} \u2026")
            self.refresh()
            return
        if fresh.error.is_final:
            retry = "Retrying does not help before this is changed."
        else:
            wait_s = max(0.0, fresh.next_at_s - now_s)
            retry = "Retrying now." if wait_s < 0.05 else f"Retrying in {cells.duration(float(round(wait_s + 0.5)))}."
        self._text = Text.assemble(
            (f"No answer from {cells.name(_called(cluster))}", "bold"),
            "\n\n",
            cells.name(str(fresh.error)),
            "\n\n",
            f"{retry} Attempts: {fresh.attempts}.",
            "\n\n",
            f"{LOCAL if cluster.context is None else STEPS.format(cluster.context)}\n",
            "Press ctrl+r to retry now, gc to choose another cluster, q to quit.",
        )
        self.refresh()

    def render(self) -> RenderResult:
        return self._text


def _called(cluster: ClusterLabel) -> str:
    return cluster.address if cluster.context is None else f"{cluster.context} ({cluster.address})"
