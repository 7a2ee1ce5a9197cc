"""Draw the pictures of docs/rebalance-designs.md: `python -m tools.design_pictures`.

Sequence diagrams say what the designs do; the charts show what the simulations of `kgctl lab designs` measure.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log10
from pathlib import Path
from xml.sax.saxutils import escape

from kgctl.lab.design import LabSettings
from kgctl.lab.failures import Trouble
from kgctl.lab.ledger import Ledger
from kgctl.lab.play import DESIGNS, play
from kgctl.lab.world import World

PICTURES = Path(__file__).parent.parent / "docs" / "pictures"
INK, GREY, FAINT, PAPER = "#1f2933", "#7b8794", "#9aa5b1", "#ffffff"
BLUE, ORANGE, RED, GREEN = "#2f6db3", "#c2701c", "#b3302f", "#3d8557"
COLOURS = {"zookeeper": RED, "server-side": ORANGE, "two-phase": BLUE, "cooperative": GREEN}
FONT = "font-family='Helvetica, Arial, sans-serif'"


class Drawing:
    """Lines of SVG."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.width, self.height = width, height
        self._lines = [
            (
                f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' height='{height}'"
                f" role='img' {FONT} font-size='13'>"
            ),
            f"<title>{escape(title)}</title>",
            (
                "<defs><marker id='tip' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='8' markerHeight='8'"
                " orient='auto-start-reverse'><path d='M0 0.5 L7.5 4 L0 7.5 z' fill='context-stroke'/></marker></defs>"
            ),
            f"<rect width='{width}' height='{height}' fill='{PAPER}'/>",
        ]

    def text(self, x: float, y: float, words: str, colour: str = INK, anchor: str = "middle", style: str = "") -> None:
        self._lines.append(
            f"<text x='{x:g}' y='{y:g}' fill='{colour}' text-anchor='{anchor}' {style}>{escape(words)}</text>"
        )

    def line(self, *points: float, colour: str = INK, style: str = "") -> None:
        x1, y1, x2, y2 = points
        self._lines.append(f"<line x1='{x1:g}' y1='{y1:g}' x2='{x2:g}' y2='{y2:g}' stroke='{colour}' {style}/>")

    def box(self, x: float, y: float, width: float, height: float, fill: str, style: str = "") -> None:
        self._lines.append(f"<rect x='{x:g}' y='{y:g}' width='{width:g}' height='{height:g}' fill='{fill}' {style}/>")

    def path(self, points: Sequence[tuple[float, float]], colour: str, fill: str = "none", width: float = 2) -> None:
        drawn = " L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        self._lines.append(
            f"<path d='M{drawn}' fill='{fill}' stroke='{colour}' stroke-width='{width:g}' stroke-linejoin='round'/>"
        )

    def save(self, name: str) -> None:
        PICTURES.mkdir(exist_ok=True)
        (PICTURES / name).write_text("\n".join([*self._lines, "</svg>", ""]))


class SequenceDiagram:
    """Columns with a lifeline each, and rows from top to bottom."""

    TOP, STEP, MARGIN = 64, 30, 105

    def __init__(self, title: str, columns: Sequence[str], rows: int, gap: int = 190) -> None:
        width = 2 * self.MARGIN + gap * (len(columns) - 1)
        self._height = self.TOP + self.STEP * rows + 10
        self.drawing = Drawing(width, self._height, title)
        self._x = [self.MARGIN + gap * index for index in range(len(columns))]
        self._y = float(self.TOP)
        for x, name in zip(self._x, columns, strict=True):
            self.drawing.line(x, 44, x, self._height - 8, colour=FAINT, style="stroke-dasharray='3 4'")
            self.drawing.box(x - 72, 14, 144, 30, "#eef2f6", f"rx='5' stroke='{FAINT}'")
            self.drawing.text(x, 34, name, style="font-weight='600'")

    def message(self, source: int, target: int, words: str, colour: str = INK, dashed: bool = False) -> None:
        x1, x2, y = self._x[source], self._x[target], self._y
        inset = 4 if x2 > x1 else -4
        style = "stroke-width='1.6' marker-end='url(#tip)'" + (" stroke-dasharray='5 4'" if dashed else "")
        self.drawing.line(x1 + inset, y, x2 - inset, y, colour=colour, style=style)
        # The words stand at the tip of the arrow.
        if x2 > x1:
            self._label(x2 - 14, y - 6, words, colour, "end")
        else:
            self._label(x2 + 14, y - 6, words, colour, "start")
        self._y += self.STEP

    def note(self, column: int, words: str, colour: str = INK) -> None:
        width = 7.0 * len(words) + 16
        x = min(max(self._x[column] - width / 2, 4), self.drawing.width - width - 4)
        self.drawing.box(x, self._y - 19, width, 23, "#fff7e0", f"rx='4' stroke='{colour}'")
        self.drawing.text(x + width / 2, self._y - 3, words, colour)
        self._y += self.STEP

    def cross(self, column: int, words: str) -> None:
        x, y = self._x[column], self._y - 8
        for lean in (-1, 1):
            self.drawing.line(x - 7, y - 7 * lean, x + 7, y + 7 * lean, colour=RED, style="stroke-width='3'")
        self._label(x + 14, y + 5, words, RED, "start")
        self._y += self.STEP

    def _label(self, x: float, y: float, words: str, colour: str, anchor: str = "middle") -> None:
        self.drawing.text(x, y, words, colour, anchor, f"paint-order='stroke' stroke='{PAPER}' stroke-width='4'")


def draw_zookeeper() -> None:
    picture = SequenceDiagram("Members that watch ZooKeeper", ["member 1", "member 2", "ZooKeeper", "member 3"], 12)
    picture.cross(3, "crashes")
    picture.note(2, "session expires: its nodes disappear")
    picture.message(2, 0, "watch fires", RED)
    picture.message(2, 1, "watch fires", RED)
    picture.note(0, "gives up its partitions")
    picture.message(0, 2, "read all members, all partitions", BLUE)
    picture.note(0, "computes the whole assignment")
    picture.message(0, 2, "create /owners/topic/0 ... 2", BLUE)
    picture.message(2, 0, "2 exists: member 2 has not given it up", RED, dashed=True)
    picture.note(1, "gives up its partitions, reads, computes, creates")
    picture.note(0, "deletes its nodes, tries again after 2 s", RED)
    picture.message(0, 2, "create /owners/topic/0 ... 2", BLUE)
    picture.drawing.save("rebalance-zookeeper.svg")


def draw_server_side() -> None:
    picture = SequenceDiagram("A broker assigns", ["member 1", "member 2", "coordinator", "member 3"], 10)
    picture.cross(3, "crashes")
    picture.note(2, "no heartbeat for the session timeout: out")
    picture.message(0, 2, "heartbeat", FAINT)
    picture.message(2, 0, "join again", ORANGE, dashed=True)
    picture.note(0, "gives up its partitions")
    picture.message(0, 2, "JoinGroup: topics", BLUE)
    picture.message(1, 2, "heartbeat, then JoinGroup", BLUE)
    picture.note(2, "all have joined: the broker assigns")
    picture.message(2, 0, "partitions 0, 1, 2", GREEN, dashed=True)
    picture.message(2, 1, "partitions 3, 4, 5", GREEN, dashed=True)
    picture.drawing.save("rebalance-server-side.svg")


def draw_two_phase() -> None:
    picture = SequenceDiagram("JoinGroup and SyncGroup", ["member 1", "member 2", "coordinator"], 12, gap=250)
    picture.message(0, 2, "heartbeat", FAINT)
    picture.message(2, 0, "REBALANCE_IN_PROGRESS", ORANGE, dashed=True)
    picture.message(0, 2, "JoinGroup: assignors, subscription", BLUE)
    picture.message(1, 2, "JoinGroup: assignors, subscription", BLUE)
    picture.note(2, "all have joined: generation 8, assignor range")
    picture.message(2, 0, "generation 8; you lead; all subscriptions", GREEN, dashed=True)
    picture.message(2, 1, "generation 8", GREEN, dashed=True)
    picture.message(1, 2, "SyncGroup", BLUE)
    picture.note(0, "runs the assignor")
    picture.message(0, 2, "SyncGroup: the assignment of every member", BLUE)
    picture.message(2, 0, "partitions 0, 1, 2", GREEN, dashed=True)
    picture.message(2, 1, "partitions 3, 4, 5", GREEN, dashed=True)
    picture.drawing.save("rebalance-two-phase.svg")


def draw_cooperative() -> None:
    picture = SequenceDiagram("Cooperative members", ["member 1", "member 2 (new)", "coordinator"], 12, gap=240)
    picture.message(1, 2, "JoinGroup: owns nothing", BLUE)
    picture.message(0, 2, "JoinGroup: owns 0, 1, 2, 3", BLUE)
    picture.note(0, "keeps processing 0, 1, 2, 3", GREEN)
    picture.message(2, 0, "SyncGroup: 0, 1", GREEN, dashed=True)
    picture.message(2, 1, "SyncGroup: nothing yet", GREEN, dashed=True)
    picture.note(0, "revokes 2, 3; keeps processing 0, 1", ORANGE)
    picture.message(0, 2, "JoinGroup: owns 0, 1", BLUE)
    picture.message(2, 1, "REBALANCE_IN_PROGRESS", ORANGE, dashed=True)
    picture.message(1, 2, "JoinGroup: owns nothing", BLUE)
    picture.message(2, 0, "SyncGroup: 0, 1", GREEN, dashed=True)
    picture.message(2, 1, "SyncGroup: 2, 3", GREEN, dashed=True)
    picture.note(1, "processes 2, 3", GREEN)
    picture.drawing.save("rebalance-cooperative.svg")


SIZES = (5, 10, 20, 40, 80, 160)


def draw_herd() -> None:
    """Messages for each number of members, both on logarithmic scales."""
    drawing = Drawing(640, 380, "Messages by the number of members")
    left, right, top, bottom = 80, 510, 50, 330
    found = {
        design: [play(design, LabSettings(size, 3 * size), 4, 1).messages / 8 for size in SIZES] for design in DESIGNS
    }
    steps = len(SIZES) - 1

    def at(index: float, messages: float) -> tuple[float, float]:
        return left + (right - left) * index / steps, bottom - (bottom - top) * (log10(messages) - 1) / 4

    drawing.text(left - 60, 26, "messages for one failure or repair", anchor="start", style="font-weight='600'")
    for power in range(1, 6):
        y = at(0, 10**power)[1]
        drawing.line(left, y, right, y, colour="#e3e8ed")
        drawing.text(left - 10, y + 4, f"{10**power:,}", FAINT, "end")
    for index, size in enumerate(SIZES):
        drawing.text(at(index, 10)[0], bottom + 20, str(size), FAINT)
    drawing.text((left + right) / 2, bottom + 40, "members", FAINT)
    label_y = 1e9
    for design, figures in sorted(found.items(), key=lambda item: item[1][-1]):
        points = [at(index, messages) for index, messages in enumerate(figures)]
        drawing.path(points, COLOURS[design])
        label_y = min(points[-1][1] + 4, label_y - 17)
        drawing.text(right + 10, label_y, design, COLOURS[design], "start", "font-weight='600'")
    drawing.save("rebalance-herd.svg")


SCENE = LabSettings(members=20, partitions=60)
# What happens to the group, in seconds after it has settled.
EVENTS = ((5, Trouble.CUT_OFF, 3), (30, Trouble.RECONNECT, 3), (50, Trouble.LEAVE, 7), (65, Trouble.START, 7))
SECONDS = 80


def draw_timelines() -> None:
    """For each design, how many partitions have no owner and how many have two, over time."""
    drawing = Drawing(760, 500, "Partitions without an owner and with two owners, over time")
    left, right, top, height, gap = 130, 740, 50, 84, 20
    for x, colour, words in (
        (20, GREY, "partitions without an owner"),
        (250, RED, "with two owners that may both commit"),
    ):
        drawing.box(x, 14, 12, 12, colour)
        drawing.text(x + 20, 25, words, INK, "start")
    for row, design in enumerate(DESIGNS):
        y0 = top + row * (height + gap) + height
        unowned, double = _timeline(design)
        drawing.text(left - 34, y0 - height / 2 + 4, design, COLOURS[design], "end", "font-weight='600'")
        drawing.line(left, y0, right, y0, colour=FAINT)
        for count in (0, SCENE.partitions):
            drawing.text(left - 6, y0 - height * count / 60 + 4, str(count), FAINT, "end", "font-size='11'")
        for figures, colour in ((unowned, GREY), (double, RED)):
            points = [
                (left + (right - left) * at / (10 * SECONDS), y0 - height * n / 60) for at, n in enumerate(figures)
            ]
            drawing.path([(left, y0), *points, (right, y0)], colour, colour, 0.5)
        for second, *_ in EVENTS:
            x = left + (right - left) * second / SECONDS
            drawing.line(x, y0 - height, x, y0 + 4, colour=BLUE, style="stroke-dasharray='2 3'")
    end = top + len(DESIGNS) * (height + gap)
    words = {Trouble.CUT_OFF: "a member is cut off", Trouble.RECONNECT: "and is back", Trouble.LEAVE: "another leaves"}
    for second, trouble, _ in EVENTS:
        drawing.text(left + (right - left) * second / SECONDS, end + 4, words.get(trouble, "and starts"), BLUE, "start")
        drawing.text(left + (right - left) * second / SECONDS, end + 20, f"{second} s", FAINT, "start")
    drawing.save("rebalance-timelines.svg")


def _timeline(design: str) -> tuple[list[int], list[int]]:
    """Ten times a second: partitions without an owner, and owners beyond the first."""
    world = World("timeline")
    ledger = Ledger(world, SCENE.partitions)
    group = DESIGNS[design](world, ledger, SCENE)
    group.start()
    world.run_until(60_000)
    for second, trouble, member in EVENTS:
        world.after(second * 1000, group.disturb, trouble, group.members[member])
    unowned, double = [], []
    for _ in range(10 * SECONDS):
        ledger.forget_times()
        world.run_until(world.now_ms + 100)
        ledger.pass_time()
        unowned.append(round(ledger.unowned_ms / 100))
        double.append(round(ledger.double_ms / 100))
    return unowned, double


def main() -> None:
    for draw in (draw_zookeeper, draw_server_side, draw_two_phase, draw_cooperative, draw_herd, draw_timelines):
        draw()


if __name__ == "__main__":
    main()
