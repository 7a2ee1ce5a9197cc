"""The two figures: lag over time of each group, and when the groups rebalanced."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.lines import Line2D
from matplotlib.patches import Patch, PathPatch, Rectangle
from matplotlib.path import Path as Outline

from kgctl.pipelines.report import words
from kgctl.pipelines.report.drawing import Draw, Sheet, chunks, place_axes, put_row_names, put_times
from kgctl.pipelines.report.palette import LAG, LAG_FLOORS, LAG_WORDS, PLACES, cause_colour
from kgctl.pipelines.report.rows import LagMap, Rebalance, Rebalances

ROW_IN, TOP_IN, BOTTOM_IN = 0.25, 0.62, 0.5
# Fits between the names of two generations, as a share of the width.
GENERATION_ROOM = 0.022
LEAST_BAR = 0.003
# In a row, below the generation.
BAR_TOP, BAR_HIGH = 0.42, 0.5
BAR_MIDDLE = BAR_TOP + BAR_HIGH / 2
LONE_SPAN_MS = 60_000


@dataclass(frozen=True, slots=True)
class Picture:
    """`described` is for those who cannot see it."""

    described: str
    height_in: float
    draw: Draw


def lag_picture(lag: LagMap) -> Picture:
    peak = max((cell for row in lag.lag for cell in row if cell is not None), default=0)
    described = (
        f"Lag of {words.count(len(lag.groups), 'group')} over time, {words.period(lag.edges_ms[0], lag.edges_ms[-1])}: "
        f"the stronger the colour, the more records wait; the most is {words.number(peak)}, of {words.name(lag.groups[0])}."
    )
    return Picture(described, _height(len(lag.groups)), lambda sheet: _draw_lag(sheet, lag))


def rebalance_picture(found: Rebalances) -> Picture:
    rows = _rows(found)
    described = (
        f"When {words.count(len(rows), 'group')} rebalanced: "
        + "; ".join(f"{words.name(group)} {words.count(len(of), 'time')}" for group, of in rows[:5])
        + ("; and others." if len(rows) > 5 else ".")
    )
    return Picture(described, _height(len(rows)), lambda sheet: _draw_rebalances(sheet, rows))


def _height(rows: int) -> float:
    return TOP_IN + BOTTOM_IN + ROW_IN * max(rows, 1)


def _draw_lag(sheet: Sheet, lag: LagMap) -> None:
    place_axes(sheet, TOP_IN, BOTTOM_IN)
    put_row_names(sheet, [words.name(group) for group in lag.groups])
    put_times(sheet, lag.edges_ms[0], lag.edges_ms[-1])
    boxes = defaultdict(list)
    for row, cells in enumerate(lag.lag):
        levels = [None if cell is None else bisect_right(LAG_FLOORS, cell) - 1 for cell in cells]
        for start, end, level in chunks(levels):
            if level is not None:
                boxes[level].append((lag.edges_ms[start], row + 0.06, lag.edges_ms[end], row + 0.94))
    # One outline per level: a thousand cells are not a thousand elements.
    for level in sorted(boxes):
        sheet.axes.add_patch(
            PathPatch(_outline(boxes[level]), facecolor=sheet.colour[LAG[level]], linewidth=0, antialiased=False)
        )
    keys = [Patch(facecolor=sheet.colour[name], edgecolor=sheet.colour["soft"], linewidth=0.4) for name in LAG]
    blank = Patch(facecolor="none", edgecolor=sheet.colour["soft"], linewidth=0.4)
    _legend(sheet, [*keys, blank], [*LAG_WORDS, "not known"], "records waiting", 9)


def _draw_rebalances(sheet: Sheet, rows: Sequence[tuple[str, list[Rebalance]]]) -> None:
    every = [one for _, of in rows for one in of]
    first = min(one.ended_ms if one.started_ms is None else one.started_ms for one in every)
    last = max(one.ended_ms for one in every)
    room = max((last - first) * 0.03, LONE_SPAN_MS / 2 if last == first else 0)
    first, last = int(first - room), int(last + room)
    place_axes(sheet, TOP_IN, BOTTOM_IN)
    put_row_names(sheet, [words.name(group) for group, _ in rows], BAR_MIDDLE)
    put_times(sheet, first, last)
    sheet.axes.hlines(
        [row + BAR_MIDDLE for row in range(len(rows))],
        first,
        last,
        colors=sheet.colour["rule"],
        linewidth=0.6,
        zorder=0,
    )
    for row, (_, of) in enumerate(rows):
        named = float("-inf")
        for one in of:
            middle = _put_rebalance(sheet, row, one, last - first)
            if (
                one.generation is not None
                and middle - named > GENERATION_ROOM * (last - first) * len(str(one.generation)) ** 0.7
            ):
                named = middle
                _put_generation(sheet, row, middle, one.generation)
    _cause_legend(sheet, every)


def _put_rebalance(sheet: Sheet, row: int, one: Rebalance, span_ms: float) -> float:
    """Its middle."""
    colour = sheet.colour[cause_colour(one.cause)[1]]
    if one.started_ms is None:
        sheet.axes.plot(
            [one.ended_ms] * 2,
            [row + BAR_TOP, row + BAR_TOP + BAR_HIGH],
            color=colour,
            linewidth=1.4,
            solid_capstyle="butt",
        )
        return one.ended_ms
    width = max(one.ended_ms - one.started_ms, LEAST_BAR * span_ms)
    box = Rectangle(
        (one.started_ms, row + BAR_TOP),
        width,
        BAR_HIGH,
        facecolor=colour,
        edgecolor=sheet.colour["ink"],
        linewidth=0.35,
    )
    sheet.axes.add_patch(box)
    return one.started_ms + width / 2


def _put_generation(sheet: Sheet, row: int, middle: float, generation: int) -> None:
    sheet.axes.text(
        middle, row + BAR_TOP - 0.04, str(generation), fontsize=6.5, ha="center", va="bottom", color=sheet.colour["ink"]
    )


def _cause_legend(sheet: Sheet, every: Sequence[Rebalance]) -> None:
    order = list(PLACES)
    seen = dict(sorted({cause_colour(one.cause) for one in every}, key=lambda pair: order.index(pair[1])))
    keys: list[Patch | Line2D] = [
        Patch(facecolor=sheet.colour[name], edgecolor=sheet.colour["ink"], linewidth=0.35) for name in seen.values()
    ]
    labels = list(seen)
    if any(one.started_ms is None for one in every):
        keys.append(Line2D([], [], color=sheet.colour["soft"], marker="|", linestyle="none", markersize=8))
        labels.append("only the end is known")
    _legend(sheet, keys, labels, "", 5)


def _legend(sheet: Sheet, keys: Sequence[Patch | Line2D], labels: Sequence[str], title: str, columns: int) -> None:
    height = sheet.figure.get_figheight()
    legend = sheet.figure.legend(
        keys,
        labels,
        title=title or None,
        loc="upper left",
        bbox_to_anchor=(0.0, 1 - 0.02 / height),
        ncols=columns,
        frameon=False,
        fontsize=8,
        title_fontsize=8,
        labelcolor=sheet.colour["ink"],
        handlelength=1.3,
        handleheight=0.9,
        columnspacing=1.2,
        handletextpad=0.5,
        alignment="left",
        borderpad=0.2,
    )
    legend.get_title().set_color(sheet.colour["soft"])


def _outline(boxes: Sequence[tuple[float, float, float, float]]) -> Outline:
    corners, codes = [], []
    for left, top, right, bottom in boxes:
        corners += [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
        codes += [Outline.MOVETO, *[Outline.LINETO] * 3, Outline.CLOSEPOLY]
    return Outline(corners, codes)


def _rows(found: Rebalances) -> list[tuple[str, list[Rebalance]]]:
    """The busiest groups with those of their rebalances that are among the newest."""
    of = defaultdict(list)
    for one in found.newest:
        of[one.group].append(one)
    return [(group, of[group]) for group, _ in found.busiest if group in of]
