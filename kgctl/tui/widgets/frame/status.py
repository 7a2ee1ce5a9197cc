"""The first line of every screen: the cluster, the current place, and the age of the data."""

from __future__ import annotations

from rich.text import Text
from textual.app import RenderResult
from textual.widget import Widget

from kgctl.tui import cells
from kgctl.tui.cluster_label import ClusterLabel
from kgctl.tui.polling import Freshness

STALE_AFTER_INTERVALS = 3
# The colours of contexts, readable on every theme.
BADGES = {
    "red": "#ffffff on #b3261e",
    "green": "#ffffff on #2e7d32",
    "yellow": "#000000 on #e6b422",
    "blue": "#ffffff on #1f5fa8",
    "magenta": "#ffffff on #8e3a8e",
    "cyan": "#000000 on #35b5c4",
    "white": "#000000 on #f2f2f2",
}


class Status(Widget):
    """If both parts do not fit, the left part is cut first."""

    DEFAULT_CSS = """
    Status { height: 1; background: $panel; color: $foreground; padding: 0 1; }
    Status.-lost { background: $error; color: $background; text-style: bold; }
    """

    def __init__(self, place: str) -> None:
        super().__init__()
        self._place = place
        self._left = ""
        self._right = ""
        self._badge: tuple[int, int, ClusterLabel] | None = None

    @property
    def text(self) -> str:
        return f"{self._left}  {self._right}"

    def show(
        self, cluster: ClusterLabel, fresh: Freshness, now_s: float, interval_s: float, *, paused: bool, read_only: bool
    ) -> None:
        before = (self._left, self._right)
        # A context whose name is coloured needs blanks around it to be readable.
        called = f" {cells.name(cluster.name)} " if cluster.color else cells.name(cluster.name)
        self._left = " \u203a ".join(["kgctl", called, *([self._place] if self._place else [])])
        self._badge = (len("kgctl \u203a "), len(called), cluster)
        parts = ["read-only"] if read_only else []
        if fresh.error is not None:
            since = cells.duration(now_s - (fresh.failed_at_s if fresh.failed_at_s is not None else now_s))
            parts.append(f"NO ANSWER for {since}" + ("" if fresh.error.is_final else ", retrying"))
        if fresh.answered_at_s is None:
            parts += [] if fresh.is_lost else ["loading \u2026"]
        else:
            age_s = max(0.0, now_s - fresh.answered_at_s)
            is_stale = age_s > max(STALE_AFTER_INTERVALS * interval_s, 2 * fresh.took_s + interval_s)
            age = "live" if age_s < 1 and not fresh.is_lost else f"{cells.duration(float(int(age_s)))} old"
            parts.append(("STALE, " if is_stale and not fresh.is_lost and not paused else "") + age)
        # Retries have their own interval.
        parts += ["PAUSED"] if paused else [] if fresh.is_lost else [f"every {cells.duration(interval_s)}"]
        self._right = " \u00b7 ".join(parts)
        self.set_class(fresh.is_lost, "-lost")
        if (self._left, self._right) != before:
            self.refresh()

    def render(self) -> RenderResult:
        width = self.size.width
        right = cells.fitted(self._right, min(len(self._right), width))
        left = cells.fitted(self._left, max(0, width - len(right) - 1))
        text = Text(f"{left} {right}" if left else right, no_wrap=True)
        if self._badge is not None and self._badge[2].context is not None:
            begin, length, cluster = self._badge
            text.stylize(
                f"bold {BADGES[cluster.color]}" if cluster.color else "bold", begin, min(begin + length, len(left))
            )
        return text
