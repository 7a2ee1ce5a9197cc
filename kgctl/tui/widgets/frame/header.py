"""The first line of every screen: the cluster, the place, facts of the screen, and the age of the data."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from textual.content import Content
from textual.widget import Widget

from kgctl.tui import cells
from kgctl.tui.cluster_label import ClusterLabel
from kgctl.tui.polling import Freshness
from kgctl.tui.widgets.frame import glyphs
from kgctl.tui.widgets.frame.badges import BADGES
from kgctl.tui.widgets.text.line import as_fits

STALE_AFTER_INTERVALS = 3
PATH, SEPARATOR = f" {glyphs.PATH} ", f" {glyphs.SEPARATOR} "
READ_ONLY = "READ-ONLY"


class Header(Widget):
    """The colour of a context fills the left part. What does not fit is left out as a whole: facts first, the name of the place last."""

    DEFAULT_CSS = """
    Header { height: 1; background: $panel; color: $foreground; }
    Header.-frozen { background: $primary; color: $background; text-style: bold; }
    Header.-lost { background: $error; color: $background; text-style: bold; }
    """

    def __init__(self, place: str) -> None:
        super().__init__()
        self._place = place
        self._cluster: ClusterLabel | None = None
        self._facts: Sequence[str] = ()
        self._headline: Sequence[Content] = ()
        self._marks: Sequence[str] = ()
        self._shown: object = None

    @property
    def text(self) -> str:
        """The line without blanks at its ends."""
        return self._line(max(1, self.size.width)).plain.strip()

    def show(
        self,
        cluster: ClusterLabel,
        fresh: Freshness,
        now_s: float,
        interval_s: float,
        *,
        facts: Sequence[str] = (),
        headline: Sequence[Content] = (),
        paused: bool,
        read_only: bool,
        replay: str | None = None,
        frozen_at_s: float | None = None,
        baseline_ms: int | None = None,
    ) -> None:
        """`facts` are about the cluster, `headline` is what the screen has to say; both in the order of importance.

        `replay` is where a recording stands; it replaces the age of the data. `frozen_at_s` is the time of the data on a frozen screen.
        """
        self._cluster, self._facts, self._headline = cluster, facts, headline
        state = _state(fresh, now_s, interval_s, paused=paused) if replay is None else replay
        if frozen_at_s is not None:
            old = f"{SEPARATOR}{_old(now_s - frozen_at_s)}" if replay is None else ""
            state = f"{glyphs.PAUSED} FROZEN{old}" + (f"   {state}" if replay is not None or fresh.is_lost else "")
        since = [] if baseline_ms is None else [f"{glyphs.RISING}{glyphs.FALLING} since {_clock(baseline_ms)}"]
        self._marks = [*([READ_ONLY] if read_only else []), *since, state]
        self.set_class(frozen_at_s is not None, "-frozen")
        self.set_class(fresh.is_lost, "-lost")
        shown = (cluster, tuple(facts), tuple(headline), tuple(self._marks))
        if shown != self._shown:
            self._shown = shown
            self.refresh()

    def render(self) -> Content:
        return self._line(max(1, self.size.width))

    def _line(self, width: int) -> Content:
        if self._cluster is None:
            return Content()
        right = Content.styled("   ".join(self._marks) + " ", "bold" if len(self._marks) > 1 else "")
        room = max(0, width - right.cell_length - 1)
        left = self._left(self._cluster)
        if left.cell_length > room:
            left = left.truncate(room, ellipsis=True)
        if self._headline:
            longer = as_fits(left, self._headline, "    ", "  ", room)
            # In the middle of what is left, if there is room for that.
            more = longer.cell_length - left.cell_length
            left = left + " " * max(0, (room - left.cell_length - more) // 2 - 2) + longer[left.cell_length :]
        else:
            parts = [Content.styled(fact, "$text-muted") for fact in self._facts]
            left = as_fits(left, parts, " ", SEPARATOR, room)
        return left + " " * (width - left.cell_length - right.cell_length) + right

    def _left(self, cluster: ClusterLabel) -> Content:
        name = cells.name(cluster.name)
        place = f"{PATH}{self._place}" if self._place else ""
        # A recording may have a color of a newer kgctl.
        if (badge := BADGES.get(cluster.color or "")) is not None:
            return Content.styled(f" kgctl {glyphs.PATH} {name}{place} ", f"bold {badge.style}")
        between = PATH if self._place else "  "
        return Content.assemble(" kgctl", between, (name, "bold"), (place, "bold"), " ")


def facts_of(cluster: ClusterLabel, brokers: int | None = None, topics: int | None = None) -> list[str]:
    """The address, unless it is the name, and how many brokers and topics there are."""
    found = []
    if cluster.context is not None:
        first, *others = cluster.address.split(",")
        found.append(cells.name(first) + (f" +{len(others)}" if others else ""))
    for count, noun in ((brokers, "broker"), (topics, "topic")):
        if count is not None:
            found.append(f"{count:,} {noun}{'' if count == 1 else 's'}")
    return found


def _state(fresh: Freshness, now_s: float, interval_s: float, *, paused: bool) -> str:
    """Whether the data are live, and how old they are otherwise. The glyph says the same as the word."""
    age = ""
    if fresh.answered_at_s is not None:
        age = _old(now_s - fresh.answered_at_s)
    if fresh.error is not None:
        since = cells.duration(now_s - (fresh.failed_at_s if fresh.failed_at_s is not None else now_s))
        retrying = "" if fresh.error.is_final else ", retrying"
        parts = [f"{glyphs.FAULT} NO ANSWER for {since}{retrying}", *([age] if age else [])]
        return SEPARATOR.join([*parts, "PAUSED"] if paused else parts)
    if paused:
        return f"{glyphs.PAUSED} PAUSED{SEPARATOR}{age}" if age else f"{glyphs.PAUSED} PAUSED"
    if fresh.answered_at_s is None:
        return f"{glyphs.UNUSED} loading {glyphs.ELLIPSIS}"
    age_s = now_s - fresh.answered_at_s
    if age_s > max(STALE_AFTER_INTERVALS * interval_s, 2 * fresh.took_s + interval_s):
        return f"{glyphs.WARNING} STALE{SEPARATOR}{age}"
    if age_s >= max(1.0, interval_s + fresh.took_s):
        return f"{glyphs.GOOD} {age}"
    return f"{glyphs.GOOD} live {cells.age(interval_s)}"


def _old(seconds: float) -> str:
    return f"{cells.duration(float(int(max(0.0, seconds))))} old"


def _clock(wall_ms: int) -> str:
    return f"{datetime.fromtimestamp(wall_ms / 1000, UTC):%H:%M:%S}"
