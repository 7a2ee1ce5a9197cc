"""The rebalances of a group: a bar each, the newest first, and of one of them all that is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from rich.cells import cell_len
from rich.text import Text
from textual.app import RenderResult
from textual.widget import Widget

from kgctl.model.groups import TopicPartitions
from kgctl.model.watched import Rebalance
from kgctl.render.table import MISSING
from kgctl.tui import cells
from kgctl.tui.widgets.columns import Column
from kgctl.tui.widgets.rows import Rows
from kgctl.tui.widgets.standing import short_id
from kgctl.watch import kept

PREPARE, COMPLETE, WHOLE, UNDER_WAY = "\u2591", "\u2588", "\u2592", "\u25b6"
BAR = "bar"
# What a full bar may stand for: it grows in steps, so that the others do not shrink at every refresh.
SCALES_MS = (100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000, 600_000)


@dataclass(frozen=True, slots=True)
class Bar:
    """A rebalance as a row. `took_ms` goes on while it is under way; `key` stays the same when it ends."""

    key: str
    rebalance: Rebalance
    took_ms: int

    @property
    def is_under_way(self) -> bool:
        return not self.rebalance.outcome


class Timeline(Rows[Bar]):
    """`show_rebalances` takes them oldest first. The cursor follows the newest as long as it stands there."""

    def __init__(self, *, id: str | None = None) -> None:
        self.scale_ms = SCALES_MS[0]
        super().__init__(
            [
                Column("time", "UTC", lambda bar: clock_time(bar.rebalance.started_ms), 8),
                Column("generation", "GEN", _generation, 5, right=True),
                Column("cause", "CAUSE", _cause, 21, style=_cause_style),
                Column(BAR, "DURATION", self._bar, 10, flex=1, most=60, style=_bar_style),
                Column("took", "", _took, 7, right=True),
                Column("members", "IN/OUT", _in_and_out, 7, right=True),
                Column("moved", "MOVED", lambda bar: cells.count(bar.rebalance.partitions_moved), 5, right=True),
            ],
            key=lambda bar: bar.key,
            empty="No rebalance yet.",
            id=id,
        )

    def show_rebalances(self, rebalances: Sequence[Rebalance], now_ms: int) -> None:
        """`now_ms` by the clock of `started_ms`: how far a rebalance that is under way has come."""
        before = self.cursor_row
        was_newest = before is None or before is self.rows[0]
        bars = _bars(rebalances, now_ms)
        longest_ms = max((bar.took_ms for bar in bars), default=0)
        self.scale_ms = next((scale for scale in SCALES_MS if scale >= longest_ms), longest_ms)
        self.show(bars)
        if was_newest and bars and before is not None and bars[0].key != before.key:
            self.action_go(0)

    @property
    def legend(self) -> str:
        signs = f"{PREPARE} members awaited  {COMPLETE} leader assigns"
        if any(bar.rebalance.prepare_ms is None and not bar.is_under_way for bar in self.rows):
            signs += f"  {WHOLE} either"
        return f"{signs}  full bar {cells.milliseconds(self.scale_ms)}"

    def _bar(self, bar: Bar) -> str:
        width = next((width for column, width in self._laid_out() if column.key == BAR), 0)
        return drawn(bar, self.scale_ms, width)


def drawn(bar: Bar, scale_ms: int, width: int) -> str:
    """Its two phases to scale; a phase that took any time has a cell at least. One that is under way ends in an arrow."""
    row = bar.rebalance

    def cells_of(span_ms: int) -> int:
        return max(1, round(width * span_ms / scale_ms)) if span_ms > 0 and scale_ms else 0

    if row.prepare_ms is None:
        text = (PREPARE if bar.is_under_way else WHOLE) * cells_of(bar.took_ms)
    else:
        text = PREPARE * cells_of(row.prepare_ms) + COMPLETE * cells_of(bar.took_ms - row.prepare_ms)
    if bar.is_under_way:
        return text[: width - 1] + UNDER_WAY
    return text[:width]


def clock_time(moment_ms: int) -> str:
    return f"{datetime.fromtimestamp(moment_ms / 1000, UTC):%H:%M:%S}"


def _bars(rebalances: Sequence[Rebalance], now_ms: int) -> list[Bar]:
    times: dict[int, int] = {}
    bars = []
    for row in rebalances:
        # Two that began in the same ms are told apart by their order.
        place = times[row.started_ms] = times.get(row.started_ms, 0) + 1
        bars.append(Bar(f"{row.started_ms} {place}", row, _took_ms(row, now_ms)))
    return bars[::-1]


def _took_ms(row: Rebalance, now_ms: int) -> int:
    if row.ended_ms is None:
        return max(0, now_ms - row.started_ms) if not row.outcome else (row.prepare_ms or 0) + (row.complete_ms or 0)
    return max(0, row.ended_ms - row.started_ms)


def _generation(bar: Bar) -> str:
    return "\u2026" if bar.is_under_way and bar.rebalance.generation is None else cells.count(bar.rebalance.generation)


def _took(bar: Bar) -> str:
    if bar.rebalance.outcome in (kept.INTERRUPTED, kept.REPLACED) or _is_between_looks(bar):
        return MISSING
    # From outside it is only known to lie between two looks.
    return ("~" if bar.rebalance.is_seen else "") + cells.milliseconds(bar.took_ms)


def _is_between_looks(bar: Bar) -> bool:
    """One look showed the group as it was before, the next as it is now: how long it took is not known."""
    return bar.rebalance.is_seen and not bar.is_under_way and not bar.took_ms


def _in_and_out(bar: Bar) -> str:
    row = bar.rebalance
    if bar.is_under_way and not row.is_seen:
        return MISSING
    said = [f"+{row.joined_count}"] if row.joined_count else []
    said += [f"-{row.left_count}"] if row.left_count else []
    return " ".join(said) or "0"


def _cause(bar: Bar) -> str:
    return "member replaced" if bar.rebalance.outcome == kept.REPLACED else cells.name(bar.rebalance.cause)


def _cause_style(bar: Bar) -> str:
    return "warn" if bar.is_under_way else ""


def _bar_style(bar: Bar) -> str:
    return "warn" if bar.is_under_way else "dim"


class RebalanceDetail(Widget):
    """All that is known of one rebalance, in as many lines as there are."""

    DEFAULT_CSS = """
    RebalanceDetail { height: 1fr; padding: 0 2; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._bar: Bar | None = None
        self._called: Mapping[str, str] = {}

    @property
    def text(self) -> str:
        return "\n".join(line.plain for line in self._lines(10_000))

    def show(self, bar: Bar | None, called: Mapping[str, str]) -> None:
        """`called`: what to call the members that are there, by member id; the others are called by their ids."""
        if (bar, called) != (self._bar, self._called):
            self._bar, self._called = bar, called
            self.refresh()

    def render(self) -> RenderResult:
        width, height = self.size.width, self.size.height
        lines = list(self._lines(width))
        if len(lines) > height > 0:
            hidden = len(lines) - height + 1
            lines = [*lines[: height - 1], Text(f"\u2026 {hidden:,} lines more; Enter shows the assignment", "italic")]
        for line in lines:
            line.truncate(width, overflow="ellipsis")
        return Text("\n", no_wrap=True).join(lines)

    def _lines(self, width: int) -> Iterator[Text]:
        if self._bar is None:
            return
        bar, row = self._bar, self._bar.rebalance
        yield Text(f"{_headline(bar)}", "bold")
        yield from _wrapped(_phases(bar), width)
        yield from self._members("In", row.joined, row.joined_count, (), width)
        yield from self._members("Out", row.left, row.left_count, row.left_causes, width)
        if row.reason and not row.is_seen:
            yield from _entry("Reason", f"\u201c{cells.name(row.reason)}\u201d", width)
        if row.assignment is not None:
            gets = "Gets"
            for member, topics in row.assignment.items():
                owned = " ".join(cells.name(str(_in_order(topic))) for topic in topics) or "nothing"
                yield from _entry(gets, f"{self._called_by(member)}: {owned}", width)
                gets = ""
        elif not bar.is_under_way and row.outcome == kept.STABLE:
            yield from _entry("Gets", "- (who got what is not known of this rebalance)", width)

    def _members(self, word: str, ids: Sequence[str], count: int, causes: Sequence[str], width: int) -> Iterator[Text]:
        """One line per cause, with those that went by it."""
        by_cause: dict[str, list[str]] = {}
        for place, member in enumerate(ids):
            by_cause.setdefault(causes[place] if place < len(causes) else "", []).append(self._called_by(member))
        if count > len(ids):
            by_cause.setdefault("", []).append(f"{count - len(ids):,} {'more' if ids else 'members'}")
        for cause, called in by_cause.items():
            yield from _entry(word, ", ".join(called) + (f": {cells.name(cause)}" if cause else ""), width)
            word = ""

    def _called_by(self, member_id: str) -> str:
        return self._called.get(member_id) or short_id(member_id)


def _in_order(owned: TopicPartitions) -> TopicPartitions:
    return replace(owned, partitions=tuple(sorted(owned.partitions)))


def _headline(bar: Bar) -> str:
    row = bar.rebalance
    moment = f"{datetime.fromtimestamp(row.started_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}.{row.started_ms % 1000:03d} UTC"
    number = "Under way" if bar.is_under_way else f"Generation {cells.count(row.generation)}"
    return " \u00b7 ".join([number, cells.name(row.cause or "cause not known"), moment])


def _phases(bar: Bar) -> str:
    row = bar.rebalance
    if bar.is_under_way:
        if row.prepare_ms is None:
            return f"Members are awaited for {cells.milliseconds(bar.took_ms)} so far."
        return f"Members were awaited for {cells.milliseconds(row.prepare_ms)}; now the leader's assignment is."
    if row.outcome == kept.INTERRUPTED:
        return "It began, and a restart of the broker took it away; how long it lasted is not known."
    if row.outcome == kept.REPLACED:
        return "A static member came back under a new id, and took its place without a rebalance."
    if _is_between_looks(bar):
        text = "It came and went between two looks"
    elif row.is_seen:
        text = f"It took some {cells.milliseconds(bar.took_ms)}, as looks from outside tell"
    elif row.prepare_ms is None:
        text = f"It took {cells.milliseconds(bar.took_ms)}"
    else:
        text = f"Members took {cells.milliseconds(row.prepare_ms)} to join"
        text += "" if row.complete_ms is None else f", the leader {cells.milliseconds(row.complete_ms)}"
    if row.outcome == kept.CUT_SHORT:
        return f"{text} and led to no assignment: another rebalance came in between."
    if row.outcome == kept.EMPTY:
        return f"{text}; then the group was empty."
    if row.outcome == kept.DELETED:
        return f"{text}; then the group was deleted."
    text += "" if row.members is None else f"; {_counted(row.members, 'member')}"
    return (
        text + ("" if row.partitions_moved is None else f", {_counted(row.partitions_moved, 'partition')} moved") + "."
    )


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _entry(word: str, text: str, width: int) -> Iterator[Text]:
    """A word in front, the text beside it; further lines are under the text."""
    for place, line in enumerate(_wrapped(text, width - 8)):
        yield Text(f"{word if not place else '':<8}") + line


def _wrapped(text: str, width: int) -> Iterator[Text]:
    """At spaces; a word that is longer than a line stays whole, and is cut where it is drawn."""
    line = ""
    for word in text.split(" "):
        if line and cell_len(line) + 1 + cell_len(word) > width:
            yield Text(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    yield Text(line)
