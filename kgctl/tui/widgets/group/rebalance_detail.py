"""Everything that is known about one rebalance, as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from rich.cells import cell_len
from rich.text import Text
from textual.app import RenderResult
from textual.widget import Widget

from broker.light_dataclasses import replace
from kgctl.model.groups import TopicPartitions
from kgctl.model.watched import Outcome
from kgctl.tui import cells
from kgctl.tui.widgets.group.progress import short_id
from kgctl.tui.widgets.group.timeline import Bar
from kgctl.watch.figures import counted

LABEL_WIDTH = 10


class RebalanceDetail(Widget):
    """As many lines as fit; the last one says how many more there are."""

    DEFAULT_CSS = """
    RebalanceDetail { height: 1fr; padding: 0 2; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._bar: Bar | None = None
        self._names: Mapping[str, str] = {}

    @property
    def text(self) -> str:
        return "\n".join(line.plain for line in self._lines(10_000))

    def show(self, bar: Bar | None, names: Mapping[str, str]) -> None:
        """`names` has the names of current members by member id; former members appear under their ids."""
        if (bar, names) != (self._bar, self._names):
            self._bar, self._names = bar, names
            self.refresh()

    def render(self) -> RenderResult:
        width, height = self.size.width, self.size.height
        lines = list(self._lines(width))
        if len(lines) > height > 0:
            hidden = len(lines) - height + 1
            more = f"\u2026 {counted(hidden, 'more line')}; press Enter for the assignment"
            lines = [*lines[: height - 1], Text(more, "italic")]
        for line in lines:
            line.truncate(width, overflow="ellipsis")
        return Text("\n", no_wrap=True).join(lines)

    def _lines(self, width: int) -> Iterator[Text]:
        if self._bar is None:
            return
        bar, row = self._bar, self._bar.rebalance
        yield Text(_headline(bar), "bold")
        yield from _wrapped(_phases(bar), width)
        yield from self._members("Joined", row.joined, row.joined_count, (), width)
        yield from self._members("Left", row.left, row.left_count, row.left_causes, width)
        if row.reason and not row.is_observed:
            yield from _entry("Reason", f"\u201c{cells.name(row.reason)}\u201d", width)
        if row.assignment is not None:
            label = "Assigned"
            for member, topics in row.assignment.items():
                owned = " ".join(cells.name(str(_sorted(topic))) for topic in topics) or "nothing"
                yield from _entry(label, f"{self._name_of(member)}: {owned}", width)
                label = ""
        elif row.outcome is Outcome.STABLE:
            yield from _entry("Assigned", "- (the assignment of this rebalance is not known)", width)

    def _members(self, label: str, ids: Sequence[str], count: int, causes: Sequence[str], width: int) -> Iterator[Text]:
        """One line per cause with the members that it applies to."""
        by_cause: dict[str, list[str]] = {}
        for place, member in enumerate(ids):
            by_cause.setdefault(causes[place] if place < len(causes) else "", []).append(self._name_of(member))
        if count > len(ids):
            by_cause.setdefault("", []).append(f"{count - len(ids):,} {'more' if ids else 'members'}")
        for cause, names in by_cause.items():
            yield from _entry(label, ", ".join(names) + (f": {cells.name(cause)}" if cause else ""), width)
            label = ""

    def _name_of(self, member_id: str) -> str:
        return self._names.get(member_id) or short_id(member_id)


def _sorted(owned: TopicPartitions) -> TopicPartitions:
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
            return f"Waiting for members for {cells.milliseconds(bar.took_ms)} so far."
        return f"All members joined after {cells.milliseconds(row.prepare_ms)}; waiting for the leader's assignment."
    if row.outcome is Outcome.INTERRUPTED:
        return "A broker restart interrupted it; its duration is not known."
    if row.outcome is Outcome.MEMBER_REPLACED:
        return "A static member came back with a new member id and took its place without a rebalance."
    text = _duration(bar)
    if row.outcome is Outcome.EMPTY and row.prepare_ms is not None:
        text = f"It took {cells.milliseconds(bar.took_ms)}"
    if row.outcome is Outcome.SUPERSEDED:
        return f"{text}; another rebalance superseded it before there was an assignment."
    if row.outcome is Outcome.EMPTY:
        return f"{text}; no members are left."
    if row.outcome is Outcome.DELETED:
        return f"{text}; the group was deleted."
    text += "" if row.members is None else f"; {counted(row.members, 'member')}"
    moved = "" if row.partitions_moved is None else f", {counted(row.partitions_moved, 'partition')} moved"
    return f"{text}{moved}."


def _duration(bar: Bar) -> str:
    row = bar.rebalance
    if bar.is_between_snapshots:
        return "It began and ended between two refreshes"
    if row.is_observed:
        return f"It took about {cells.milliseconds(bar.took_ms)}, as observed from outside"
    if row.prepare_ms is None:
        return f"It took {cells.milliseconds(bar.took_ms)}"
    text = f"Members took {cells.milliseconds(row.prepare_ms)} to join"
    return text if row.complete_ms is None else f"{text}, the leader {cells.milliseconds(row.complete_ms)} to assign"


def _entry(label: str, text: str, width: int) -> Iterator[Text]:
    """A label with the text beside it; continuation lines are indented below the text."""
    for place, line in enumerate(_wrapped(text, width - LABEL_WIDTH)):
        yield Text(f"{'' if place else label:<{LABEL_WIDTH}}") + line


def _wrapped(text: str, width: int) -> Iterator[Text]:
    """Break at spaces; a word longer than a line stays whole and is cut when it is rendered."""
    line = ""
    for word in text.split(" "):
        if line and cell_len(line) + 1 + cell_len(word) > width:
            yield Text(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    yield Text(line)
