"""A matplotlib figure as SVG for the page and as PNG, without a trace in the settings of who imports us."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from html import escape

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font

from kgctl.pipelines.report.palette import LIGHT, PLACES, by_name
from kgctl.render.fitting import shorten
from kgctl.render.table import width_of

WIDTH_IN = 9.6
PNG_DPI = 160
LABEL_IN, RIGHT_IN = 2.0, 0.4
# What matplotlib brings along: the same metrics everywhere.
FONT = "DejaVu Sans"
FONT_SIZE = 9.0
ELLIPSIS = "\u2026"
_BOX = "\u25a1"
NAME_PT = (LABEL_IN - 0.16) * 72
_STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)


@dataclass(slots=True)
class Sheet:
    """What is drawn on; sizes in inches. `colour` gives a colour by its name, names go through `label`."""

    figure: Figure
    axes: Axes
    colour: Mapping[str, str]
    for_page: bool
    names: list[str] = field(default_factory=list)

    def label(self, text: str) -> str:
        """The page has fonts for any name; a picture has one, and what that lacks becomes a box."""
        if not self.for_page:
            return _drawable(text)
        self.names.append(text)
        return f"NAME{len(self.names) - 1:04d}EMAN"


Draw = Callable[[Sheet], None]


def as_svg(draw: Draw, height_in: float, described: str) -> str:
    """An <svg> element whose colours are CSS variables; equal for equal drawings."""
    # Ids come from this: two figures in one page must not share them.
    settings = {**_settings(), "svg.fonttype": "none", "svg.hashsalt": described}
    with mpl.rc_context(settings):
        sheet = _sheet(height_in, PLACES, for_page=True)
        draw(sheet)
        out = io.StringIO()
        FigureCanvasSVG(sheet.figure).print_svg(out, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    svg = out.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<(metadata|style)\b.*?</\1>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<g id=\"[^\"]*\"", "<g", svg)
    # The page's own font; matplotlib's may not be there.
    svg = svg.replace(f"font-family: '{FONT}'; ", "")
    svg = re.sub(r' transform="rotate\(-0 [^"]*\)"', "", svg)
    box = re.search(r"viewBox=\"([^\"]*)\"", svg)
    head = f'<svg viewBox="{box[1] if box else ""}" role="img" aria-label="{escape(described)}">'
    # Names last: what is in them is not ours to replace.
    svg = re.sub(r"NAME(\d{4})EMAN", lambda found: escape(sheet.names[int(found[1])]), by_name(svg))
    return head + svg[svg.index(">") + 1 :].strip()


def as_png(draw: Draw, height_in: float) -> bytes:
    with mpl.rc_context(_settings()):
        sheet = _sheet(height_in, LIGHT, for_page=False)
        sheet.figure.set_facecolor(LIGHT["page"])
        draw(sheet)
        out = io.BytesIO()
        FigureCanvasAgg(sheet.figure)
        sheet.figure.savefig(out, format="png", dpi=PNG_DPI, metadata={"Software": None})
    return out.getvalue()


def place_axes(sheet: Sheet, top_in: float, bottom_in: float) -> None:
    """Fixed margins: what a name looks like must not move anything."""
    height = sheet.figure.get_figheight()
    sheet.axes.set_position(
        (
            LABEL_IN / WIDTH_IN,
            bottom_in / height,
            1 - (LABEL_IN + RIGHT_IN) / WIDTH_IN,
            1 - (top_in + bottom_in) / height,
        )
    )


def put_row_names(sheet: Sheet, names: Sequence[str], middle: float = 0.5) -> None:
    """Row 0 is at the top, each one unit high; `middle` is where in it the name stands."""
    axes = sheet.axes
    axes.set_ylim(len(names), 0)
    axes.set_yticks([])
    for row, name in enumerate(names):
        axes.annotate(
            sheet.label(fitting(name, NAME_PT)),
            (0, row + middle),
            (-6, 0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            ha="right",
            va="center",
            color=sheet.colour["ink"],
        )


def put_times(sheet: Sheet, first_ms: float, last_ms: float) -> None:
    axes, ink = sheet.axes, sheet.colour["soft"]
    axes.set_xlim(first_ms, last_ms)
    step_s, ticks = _ticks(first_ms, last_ms)
    pattern = "%H:%M:%S" if step_s < 60 else "%H:%M" if step_s < 86_400 else "%m-%d"
    times = [_utc(tick) for tick in ticks]
    axes.set_xticks(ticks, [time.strftime(pattern) for time in times])
    axes.tick_params(axis="x", colors=ink, length=3, labelcolor=ink)
    days = f"{_utc(first_ms):%Y-%m-%d}"
    if f"{_utc(last_ms):%Y-%m-%d}" != days:
        days += f" to {_utc(last_ms):%Y-%m-%d}"
    axes.set_xlabel(f"time (UTC), {days}", color=ink, labelpad=5)


def _ticks(first_ms: float, last_ms: float) -> tuple[int, list[int]]:
    span_s = (last_ms - first_ms) / 1000
    step_s = next((step for step in _STEPS_S if span_s / step <= 8), 0)
    if not step_s:
        step_s = 86_400 * -(-int(span_s) // (8 * 86_400))
    start = -(-int(first_ms) // (step_s * 1000)) * step_s * 1000
    return step_s, list(range(start, int(last_ms) + 1, step_s * 1000))


def _utc(ms: float) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def _sheet(height_in: float, colours: Mapping[str, str], *, for_page: bool) -> Sheet:
    figure = Figure(figsize=(WIDTH_IN, height_in))
    figure.patch.set_visible(not for_page)
    axes = figure.add_subplot()
    axes.patch.set_visible(False)
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(colours["rule"])
    return Sheet(figure, axes, colours, for_page)


def _settings() -> dict[str, object]:
    """matplotlib's own, whatever a user's matplotlibrc says."""
    own = {
        name: value
        for name, value in mpl.rcParamsDefault.items()
        if not name.startswith(("backend", "date.", "timezone"))
    }
    return {**own, "font.family": FONT, "font.size": FONT_SIZE, "axes.unicode_minus": False, "text.parse_math": False}


def fitting(text: str, width_pt: float) -> str:
    """As much of its start and end as has room, at the size of names."""
    for columns in range(width_of(text), 0, -1):
        short = shorten(text, columns, ELLIPSIS)
        if _width_pt(_drawable(short)) <= width_pt:
            return short
    return ELLIPSIS


def _width_pt(text: str) -> float:
    font = get_font(findfont(FontProperties(family=FONT)))
    font.set_size(FONT_SIZE, 72)
    font.set_text(text, 0)
    return float(font.get_width_height()[0]) / 64


def _drawable(text: str) -> str:
    known = _characters()
    return "".join(char if ord(char) in known else _BOX for char in text)


@cache
def _characters() -> frozenset[int]:
    return frozenset(get_font(findfont(FontProperties(family=FONT))).get_charmap())


def chunks(values: Sequence[int | None]) -> Iterator[tuple[int, int, int | None]]:
    """Runs of equal values as (start, end, value)."""
    start = 0
    for here in range(1, len(values) + 1):
        if here == len(values) or values[here] != values[start]:
            yield start, here, values[start]
            start = here
