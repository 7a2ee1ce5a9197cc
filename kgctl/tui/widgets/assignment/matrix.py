"""Lays out members x partitions as lines of text: one column per partition, or ranges if the columns do not fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from functools import partial
from itertools import groupby

from rich.cells import cell_len

from broker.light_dataclasses import dataclass
from kgctl.model.topic_partition import TopicPartition, ranges
from kgctl.tui.cells import fitted, name
from kgctl.tui.widgets.assignment.moves import Moves, Owners
from kgctl.tui.widgets.frame import glyphs

KEPT, GAINED, LOST, NONE, NO_OWNER = "\u25a0", glyphs.GAINED, glyphs.LOST, "\u00b7", "\u25cb"
UNASSIGNED, TWICE = "unassigned", "assigned twice"
STYLES = ("head", "kept", "gained", "lost", "none", "bad")
LABEL_LEAST, LABEL_SHARE, GAP = 8, 0.42, 2
# In less room than this, ranges do without their number of partitions.
TALLY_FROM = 44
_HEAD, _TALLY = "PARTITIONS", 4

Span = tuple[str, str]  # text, one of STYLES or ""
Line = tuple[Span, ...]


class View(Enum):
    BOTH = "before and after"
    AFTER = "after"
    BEFORE = "before"


@dataclass(frozen=True)
class Row:
    """The partitions of one member or, without a `member`, those with a fault: UNASSIGNED or TWICE."""

    label: Span
    member: str | None
    fault: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Identifies the row across refreshes."""
        return self.fault, self.member or ""


@dataclass(frozen=True)
class Sheet:
    """The layout: `header(left)` and `body(row)` are up to `width` cells to the right of the labels and scroll sideways together.

    `left` is the number of cells scrolled out to the left; a topic with visible columns keeps its name visible.
    """

    rows: tuple[Row, ...]
    label_width: int
    width: int
    header: Callable[[int], tuple[Line, Line]]
    body: Callable[[Row], Line]
    is_folded: bool


def sheet(change: Moves, labels: Mapping[str, str], view: View, room: int, folded: bool | None = None) -> Sheet:
    """Lay out a view in `room` cells. `labels` are printable names by member id.

    `folded` selects ranges or columns; None selects ranges only if the columns do not fit.
    """
    rows = _rows(change, labels, view)
    label_width = max([LABEL_LEAST, *(cell_len(row.label[0]) for row in rows)])
    label_width = min(label_width, max(LABEL_LEAST, int(room * LABEL_SHARE)))
    left = room - label_width - GAP
    if not folded:
        for is_dense in (False, True):
            blocks = _blocks(change.partitions, is_dense)
            width = blocks[-1].x + blocks[-1].width if blocks else 0
            if width <= left or (is_dense and folded is False):
                body = _cells_of(change, view, blocks)
                return Sheet(rows, label_width, width, partial(_header, blocks), body, False)
    return _in_ranges(change, view, rows, label_width, left)


def signs_of(change: Moves, row: Row, view: View) -> dict[TopicPartition, str]:
    """The sign of each partition that concerns a row: KEPT, GAINED, LOST, NO_OWNER, or the number of its owners."""
    owners = shown_owners(change, view)
    if row.fault == UNASSIGNED:
        return {partition: NO_OWNER for partition in change.partitions if partition not in owners}
    if row.fault == TWICE:
        return {one: str(len(found)) if len(found) < 10 else "+" for one, found in owners.items() if len(found) > 1}
    member = row.member or ""
    kept, gained, lost = change.kept[member], change.gained[member], change.lost[member]
    if view is View.BOTH:
        return dict.fromkeys(kept, KEPT) | dict.fromkeys(gained, GAINED) | dict.fromkeys(lost, LOST)
    return dict.fromkeys(kept | (gained if view is View.AFTER else lost), KEPT)


def shown_owners(change: Moves, view: View) -> Owners:
    return (change.owners_before or {}) if view is View.BEFORE else change.owners_after


def tally(change: Moves, row: Row, view: View, width: int = 0) -> str:
    """The number of partitions of a row, right-aligned in `width`, and how many it gained and lost: "12 (+1 -2)"."""
    found = list(signs_of(change, row, view).values())
    gained, lost = found.count(GAINED), found.count(LOST)
    moved = [f"+{gained}"] * bool(gained) + [f"-{lost}"] * bool(lost)
    return f"{len(found) - lost:,}".rjust(width) + (f" ({' '.join(moved)})" if moved else "")


def by_topic(change: Moves, row: Row, view: View) -> Iterable[tuple[str, list[tuple[str, str]]]]:
    """The partitions of a row as ranges by topic and sign: ("orders", [(KEPT, "0-3,7"), (GAINED, "4")])."""
    found = signs_of(change, row, view)
    for topic, some in groupby(sorted(found), key=lambda partition: partition[0]):
        numbers = list(some)
        signs = sorted({found[one] for one in numbers}, key=_SIGN_ORDER.index) if row.member else [""]
        yield (
            topic,
            [(sign, ranges(one[1] for one in numbers if not sign or found[one] == sign)) for sign in signs],
        )


# ---- rows


def _rows(change: Moves, labels: Mapping[str, str], view: View) -> tuple[Row, ...]:
    """Faults first, so that they are visible without scrolling; members that have left last."""
    owners = shown_owners(change, view)
    rows = []
    if len(owners) < len(change.partitions):
        rows.append(Row((f"! {UNASSIGNED}", "bad"), None, UNASSIGNED))
    if any(len(members) > 1 for members in owners.values()):
        rows.append(Row((f"! {TWICE}", "bad"), None, TWICE))
    absent = {View.AFTER: change.left, View.BEFORE: change.joined}.get(view, frozenset[str]())
    shown = [member for member in change.members if member not in absent]
    for member in sorted(shown, key=lambda member: (member in change.left, labels.get(member, member), member)):
        sign, style = "  ", ""
        if view is View.BOTH and member in change.joined:
            sign, style = "+ ", "gained"
        elif view is View.BOTH and member in change.left:
            sign, style = "- ", "lost"
        rows.append(Row((sign + labels.get(member, name(member)), style), member))
    return tuple(rows)


# ---- one column per partition


@dataclass(frozen=True)
class _Block:
    """The columns of one topic, starting at cell `x`."""

    topic: str
    numbers: tuple[int, ...]
    x: int
    cell: int
    width: int


def _blocks(partitions: Sequence[TopicPartition], is_dense: bool) -> list[_Block]:
    blocks: list[_Block] = []
    x = 0
    for topic, some in groupby(partitions, key=lambda partition: partition[0]):
        numbers = tuple(number for _, number in some)
        cell = 1 if is_dense else max(2, len(str(numbers[-1])) + 1)
        # A topic with few partitions still shows most of its name.
        width = max(cell * len(numbers), min(cell_len(name(topic)), 12 if is_dense else 24))
        blocks.append(_Block(topic, numbers, x, cell, width))
        x += width + GAP
    return blocks


def _header(blocks: Sequence[_Block], left: int) -> tuple[Line, Line]:
    """The topics, and below each the partition numbers: all, or every tenth if a column is one cell wide."""
    topics, numbers = "", ""
    for block in blocks:
        start = min(max(block.x, left), block.x + block.width)
        topics = _to(topics, start) + fitted(name(block.topic), block.x + block.width - start)
        numbers = _to(numbers, block.x) + _ruler(block).ljust(block.width)
    return ((topics, "head"),), ((numbers, "none"),)


def _ruler(block: _Block) -> str:
    if block.cell > 1:
        return "".join(str(number).rjust(block.cell) for number in block.numbers)
    ruler = ""
    for place, number in enumerate(block.numbers):
        has_room = place >= len(ruler) + bool(ruler) and place + len(str(number)) <= block.width
        if has_room and (number % 10 == 0 or place == 0):
            ruler = ruler.ljust(place) + str(number)
    return ruler


def _to(text: str, x: int) -> str:
    return text + " " * (x - cell_len(text))


def _cells_of(change: Moves, view: View, blocks: Sequence[_Block]) -> Callable[[Row], Line]:
    drawn: dict[tuple[str, str], Line] = {}

    def body(row: Row) -> Line:
        if row.key not in drawn:
            drawn[row.key] = line(row)
        return drawn[row.key]

    def line(row: Row) -> Line:
        found = signs_of(change, row, view)
        spans: list[Span] = []
        for block in blocks:
            for number in block.numbers:
                sign = found.get(TopicPartition(block.topic, number), NONE)
                spans.append((sign.rjust(block.cell), "bad" if row.member is None and sign != NONE else _STYLE[sign]))
            spans.append((" " * (block.width - block.cell * len(block.numbers) + GAP), "none"))
        return _joined(spans)

    return body


def _joined(spans: Iterable[Span]) -> Line:
    """Merge neighbours of the same style, because a screen has thousands of cells."""
    return tuple(("".join(text for text, _ in some), style) for style, some in groupby(spans, key=lambda one: one[1]))


# ---- ranges


def _in_ranges(change: Moves, view: View, rows: tuple[Row, ...], label_width: int, room: int) -> Sheet:
    """One column per topic; if these do not fit, each row lists its topics one after the other."""
    has_tally = room >= TALLY_FROM
    tallies = {row.key: tally(change, row, view, _TALLY) if has_tally else "" for row in rows}
    pieces = {row.key: {topic: _piece(found) for topic, found in by_topic(change, row, view)} for row in rows}
    tally_width = max([len(_HEAD), *map(len, tallies.values())]) + GAP if has_tally else 0
    topics = list(dict.fromkeys(topic for topic, _ in change.partitions))
    widths = {
        topic: max([cell_len(name(topic)), *(_width(found[topic]) for found in pieces.values() if topic in found)])
        + GAP
        for topic in topics
    }
    is_aligned = tally_width + sum(widths.values()) - GAP <= room or len(topics) == 1
    bodies: dict[tuple[str, str], Line] = {}
    for key, found in pieces.items():
        spans: list[Span] = [(tallies[key].ljust(tally_width), "")]
        for topic in topics:
            piece = found.get(topic, ())
            if is_aligned:
                spans += [*piece, (" " * (widths[topic] - _width(piece)), "")]
            elif piece:
                spans += [(f"{name(topic)} ", "none"), *piece, (" " * GAP, "")]
        bodies[key] = _joined(spans)
    heads = "".join(fitted(name(topic), widths[topic]) for topic in topics) if is_aligned else ""
    header: tuple[Line, Line] = ((), ((_HEAD[:tally_width].ljust(tally_width) + heads, "head"),))
    width = max(0, max((_width(line) for line in bodies.values()), default=0) - GAP)
    return Sheet(rows, label_width, width, lambda _: header, lambda row: bodies[row.key], True)


def _piece(found: Sequence[tuple[str, str]]) -> Line:
    """Ranges by sign: "0-3,7 \u25b34"; only moved partitions have a mark."""
    marked = [((sign if sign in (GAINED, LOST) else "") + numbers, sign) for sign, numbers in found]
    spans = [(text, "" if sign == KEPT else _STYLE.get(sign, "bad")) for text, sign in marked]
    return tuple(span for one in spans for span in ((" ", ""), one))[1:]


def _width(line: Line) -> int:
    return sum(cell_len(text) for text, _ in line)


_SIGN_ORDER = (KEPT, GAINED, LOST)
_STYLE = {KEPT: "kept", GAINED: "gained", LOST: "lost", NONE: "none", NO_OWNER: "bad"}
