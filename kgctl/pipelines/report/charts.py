"""The geometry of the two charts: lag over time of each group, and the rebalances of each group. Templates draw them.

Lengths are in units of the SVG's view box, which are pixels at its natural size.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from kgctl.pipelines.report import wording
from kgctl.pipelines.report.palette import LAG, LAG_FLOORS, LAG_LABELS, LIGHT, cause_colour
from kgctl.pipelines.report.rows import LagMap, Rebalance, Rebalances
from kgctl.pipelines.report.text_width import fitting, text_width

WIDTH, LEFT, RIGHT = 960.0, 200.0, 920.0
ROW, GAP, BELOW = 25.0, 1.5, 48.0
FONT_PX, SMALL_PX, GENERATION_PX = 12.5, 11.0, 9.0
# Within a row: the bar, below the number of the generation.
BAR_TOP, BAR_HEIGHT = 11.0, 12.0
MIN_BAR = 2.0
LONE_SPAN_MS = 60_000
MAX_TICKS = 8
_STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)


@dataclass(frozen=True, slots=True)
class Text:
    """`x` is the start or the middle of the text, as the template says; `y` its baseline or its middle."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True)
class Key:
    """A key of the legend; `colour` None is an empty box."""

    x: float
    y: float
    text: str
    colour: str | None
    is_line: bool = False


@dataclass(frozen=True, slots=True)
class Legend:
    title: str
    title_y: float
    keys: tuple[Key, ...]
    height: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart with a row per group over time. `description` is for readers who cannot see it."""

    description: str
    legend: Legend
    labels: tuple[Text, ...]
    ticks: tuple[Text, ...]
    time_label: str
    bottom: float
    width: float = WIDTH
    left: float = LEFT
    right: float = RIGHT
    font_px: float = FONT_PX
    small_px: float = SMALL_PX

    @property
    def height(self) -> float:
        return self.bottom + BELOW


@dataclass(frozen=True, slots=True)
class Area:
    path: str
    colour: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LagChart(Chart):
    """One area per level of lag: a thousand cells need not be a thousand elements."""

    areas: tuple[Area, ...]


@dataclass(frozen=True, slots=True)
class Bar:
    x: float
    y: float
    width: float
    colour: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceChart(Chart):
    """`ends` stand for rebalances whose start is not known."""

    bars: tuple[Bar, ...]
    ends: tuple[Bar, ...]
    generations: tuple[Text, ...]
    bar_height: float = BAR_HEIGHT
    generation_px: float = GENERATION_PX


@dataclass(frozen=True, slots=True)
class _Times:
    """The time axis."""

    first_ms: int
    last_ms: int

    def x(self, ms: float) -> float:
        return _rounded(LEFT + (ms - self.first_ms) / (self.last_ms - self.first_ms) * (RIGHT - LEFT))

    def ticks(self) -> tuple[Text, ...]:
        step_s = self._step_s()
        pattern = "%H:%M:%S" if step_s < 60 else "%H:%M" if step_s < 86_400 else "%m-%d"
        step_ms = step_s * 1000
        times = range(-(-self.first_ms // step_ms) * step_ms, self.last_ms + 1, step_ms)
        return tuple(Text(self.x(ms), 0.0, _utc(ms).strftime(pattern)) for ms in times)

    def label(self) -> str:
        first, last = f"{_utc(self.first_ms):%Y-%m-%d}", f"{_utc(self.last_ms):%Y-%m-%d}"
        return f"time (UTC), {first}" if first == last else f"time (UTC), {first} to {last}"

    def _step_s(self) -> int:
        span_s = (self.last_ms - self.first_ms) / 1000
        days = 86_400 * -(-int(span_s) // (MAX_TICKS * 86_400))
        return next((step for step in _STEPS_S if span_s / step <= MAX_TICKS), days)


def lag_chart(lag: LagMap, what: str = "group") -> LagChart:
    """`what` the rows are, for the description."""
    peak = max((cell for row in lag.lag for cell in row if cell is not None), default=0)
    times = _Times(lag.edges_ms[0], lag.edges_ms[-1])
    colours = [*zip(LAG_LABELS, LAG, strict=True), ("no data", None)]
    legend = _legend("records not read yet", [(label, colour, False) for label, colour in colours])
    boxes = defaultdict(list)
    for row, cells in enumerate(lag.lag):
        y = legend.height + row * ROW + GAP
        levels = [None if cell is None else bisect_right(LAG_FLOORS, cell) - 1 for cell in cells]
        for start, end, level in _runs(levels):
            if level is not None:
                left, right = times.x(lag.edges_ms[start]), times.x(lag.edges_ms[end])
                boxes[level].append(f"M{left} {y}H{right}v{ROW - 2 * GAP}H{left}z")
    return LagChart(
        description=(
            f"Lag of {wording.counted(len(lag.groups), what)} over time, {wording.period(times.first_ms, times.last_ms)}: "
            f"the stronger the colour, the higher the lag; the highest is {wording.number(peak)}, of "
            f"{wording.name(lag.groups[0])}."
        ),
        legend=legend,
        labels=_labels(legend, lag.groups, ROW / 2),
        ticks=times.ticks(),
        time_label=times.label(),
        bottom=legend.height + ROW * len(lag.groups),
        areas=tuple(Area("".join(boxes[level]), LAG[level]) for level in sorted(boxes)),
    )


def rebalance_chart(found: Rebalances) -> RebalanceChart:
    """The busiest groups, with those of their rebalances that are among the newest."""
    by_group = defaultdict(list)
    for one in found.newest:
        by_group[one.group].append(one)
    rows = [(group, by_group[group]) for group, _ in found.busiest if group in by_group]
    every = [one for _, some in rows for one in some]
    times, legend = _times_of(every), _cause_legend(every)
    bars: list[Bar] = []
    ends: list[Bar] = []
    generations: list[Text] = []
    for row, (_, some) in enumerate(rows):
        y = legend.height + row * ROW
        labelled_to = float("-inf")
        for one in some:
            bar = _bar(one, times, y + BAR_TOP)
            (ends if one.started_ms is None else bars).append(bar)
            text, middle = str(one.generation), _rounded(bar.x + bar.width / 2)
            half = text_width(text, GENERATION_PX) / 2
            if one.generation is not None and middle - half > labelled_to:
                labelled_to = middle + half + 3
                generations.append(Text(middle, y + BAR_TOP - 2, text))
    counts = "; ".join(f"{wording.name(group)} {wording.counted(len(some), 'time')}" for group, some in rows[:5])
    return RebalanceChart(
        description=f"Rebalances of {wording.counted(len(rows), 'group')}: {counts}{'; and others' * (len(rows) > 5)}.",
        legend=legend,
        labels=_labels(legend, [group for group, _ in rows], BAR_TOP + BAR_HEIGHT / 2),
        ticks=times.ticks(),
        time_label=times.label(),
        bottom=legend.height + ROW * len(rows),
        bars=tuple(bars),
        ends=tuple(ends),
        generations=tuple(generations),
    )


def _times_of(every: Sequence[Rebalance]) -> _Times:
    first = min(one.ended_ms if one.started_ms is None else one.started_ms for one in every)
    last = max(one.ended_ms for one in every)
    margin = LONE_SPAN_MS / 2 if last == first else (last - first) * 0.03
    return _Times(int(first - margin), int(last + margin) + 1)


def _bar(one: Rebalance, times: _Times, y: float) -> Bar:
    colour = cause_colour(one.cause)[1]
    if one.started_ms is None:
        return Bar(times.x(one.ended_ms), y, 0.0, colour)
    x = times.x(one.started_ms)
    return Bar(x, y, max(MIN_BAR, _rounded(times.x(one.ended_ms) - x)), colour)


def _cause_legend(every: Sequence[Rebalance]) -> Legend:
    order = list(LIGHT)
    causes = sorted({cause_colour(one.cause) for one in every}, key=lambda pair: order.index(pair[1]))
    keys: list[tuple[str, str | None, bool]] = [(label, colour, False) for label, colour in causes]
    if any(one.started_ms is None for one in every):
        keys.append(("only the end is known", None, True))
    return _legend("", keys)


def _legend(title: str, keys: Sequence[tuple[str, str | None, bool]]) -> Legend:
    """(text, colour, is a line) of each key, in as many lines as they need."""
    x, y = 0.5, 20.0 if title else 4.0
    placed = []
    for text, colour, is_line in keys:
        width = 20 + text_width(text, SMALL_PX)
        if x > 1 and x + width > WIDTH:
            x, y = 0.5, y + 18
        placed.append(Key(x, y, text, colour, is_line))
        x = _rounded(x + width + 12)
    return Legend(title, 12.0, tuple(placed), y + 22)


def _labels(legend: Legend, names: Sequence[str], middle: float) -> tuple[Text, ...]:
    """The name of each row; `middle` is the vertical position within the row."""
    room = LEFT - 12
    return tuple(
        Text(LEFT, legend.height + row * ROW + middle, fitting(wording.name(name), room, FONT_PX))
        for row, name in enumerate(names)
    )


def _runs(values: Sequence[int | None]) -> Iterator[tuple[int, int, int | None]]:
    """Runs of equal values as (start, end, value)."""
    start = 0
    for here in range(1, len(values) + 1):
        if here == len(values) or values[here] != values[start]:
            yield start, here, values[start]
            start = here


def _utc(ms: float) -> datetime:
    # An axis reaches a bit beyond its times, and the clock of a producer may be far from right.
    return datetime.fromtimestamp(min(max(ms, 0), wording.END_OF_CALENDAR_MS - 1) / 1000, UTC)


def _rounded(length: float) -> float:
    return round(length, 1)
