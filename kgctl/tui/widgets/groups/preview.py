"""The group under the cursor: its verdict with the reason, facts that no column shows, its members and partitions."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.content import Content

from kgctl.model.cluster_view import ClusterEvent, EventKind
from kgctl.model.groups import SHARE, GroupDescription, PartitionLag
from kgctl.model.watched import WatchedGroup
from kgctl.tui import cells
from kgctl.tui.widgets.events.lines import event_lines
from kgctl.tui.widgets.frame.looks import look, verdict
from kgctl.tui.widgets.frame.panel import Panel
from kgctl.tui.widgets.group.names import names
from kgctl.tui.widgets.groups.columns import facts, missing
from kgctl.tui.widgets.text.line import Line, as_fits
from kgctl.watch.figures import counted

SEPARATOR = " \u00b7 "
BETWEEN = 4
# From this width the partitions are beside the members.
BESIDE = 90
MOST_TOPICS, MOST_NAME, MEMBER_FIGURES = 4, 60, 19
LEAST_TOPIC, PARTITION_FIGURES = 24, 19


class Preview(Panel):
    DEFAULT_CSS = """
    Preview { min-height: 5; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__("", id=id)
        self.detail = Detail()

    def compose(self) -> ComposeResult:
        yield self.detail

    def show(
        self,
        row: WatchedGroup | None,
        visible: Collection[str],
        group: GroupDescription | None = None,
        events: Sequence[ClusterEvent] = (),
    ) -> None:
        """`visible` has the keys of the columns that the table shows; `events` are those of the group, the newest first."""
        self.show_title("" if row is None else cells.name(row.group))
        self.detail.show(row, visible, group, events)


class Detail(Line):
    DEFAULT_CSS = """
    Detail { height: 1fr; padding: 0; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._row: WatchedGroup | None = None
        self._visible: Collection[str] = ()
        self._group: GroupDescription | None = None
        self._events: Sequence[ClusterEvent] = ()

    def show(
        self,
        row: WatchedGroup | None,
        visible: Collection[str],
        group: GroupDescription | None,
        events: Sequence[ClusterEvent],
    ) -> None:
        self._row, self._visible, self._group, self._events = row, visible, group, events
        self.refresh()

    def text(self, width: int) -> Content:
        row = self._row
        if row is None:
            return Content()
        lines = [self._verdict(row, width), *self._facts(row, width)]
        used = sum(1 + max(0, line.cell_length - 1) // width for line in lines)
        room = self.content_size.height - used - 1
        if self._group is not None and room >= 2:
            tables = _tables(self._group, width, room)
            lines += [Content(), *tables, *event_lines(self._events, width, room - len(tables))]
        return Content("\n").join(lines)

    def _verdict(self, row: WatchedGroup, width: int) -> Content:
        """The verdict and its reason, with the last rebalance at the right if there is room."""
        reason = cells.name(row.health_reason) if row.health_reason else ""
        if row.health is None and reason:
            text = Content.styled(f"{look(None).glyph} {reason}", look(None).colour)
        else:
            text = (
                verdict(row.health) + (f" ({row.error.name})" if row.error else "") + (f": {reason}" if reason else "")
            )
        last = self._last_rebalance(row)
        blank = width - text.cell_length - last.cell_length
        return text + " " * blank + last if last and blank >= BETWEEN else text

    def _last_rebalance(self, row: WatchedGroup) -> Content:
        event = next((one for one in self._events if one.kind is EventKind.REBALANCE), None)
        if not row.rebalanced_s or event is None:
            return Content()
        return Content.styled(
            f"last rebalance {cells.age(row.rebalanced_s)} ago: {cells.name(event.text)}", "$text-muted"
        )

    def _facts(self, row: WatchedGroup, width: int) -> list[Content]:
        known = [*_reads(self._group), *facts(row, self._visible)]
        parts = [Content.styled(fact, "$text-muted") for fact in known]
        if why := missing(row, self._visible):
            parts.append(Content.styled(why, "$text-muted"))
        found = as_fits(Content(), parts, "", SEPARATOR, width)
        return [found] if found else []


def _reads(group: GroupDescription | None) -> list[str]:
    if group is None:
        return []
    topics = sorted({row.topic for row in group.partitions if row.topic} | (group.subscribed or frozenset()))
    if not topics:
        return []
    named = ", ".join(map(cells.name, topics[:MOST_TOPICS]))
    return [f"reads {named}" + (f" and {len(topics) - MOST_TOPICS:,} more" if len(topics) > MOST_TOPICS else "")]


def _tables(group: GroupDescription, width: int, room: int) -> list[Content]:
    """The members and the partitions with the most lag, beside each other where there is room."""
    called = names(group.members)
    half = width if width < BESIDE else (width - BETWEEN) // 2
    members = _members(group, called, min(half - MEMBER_FIGURES, MOST_NAME))
    partitions = _partitions(group, called, half)
    if width < BESIDE:
        return _cut(members if members[1:] else partitions, room, width)
    left, right = _cut(members, room, half), _cut(partitions, room, half)
    return [
        (left[place] if place < len(left) else Content()).pad_right(
            max(0, half + BETWEEN - (left[place].cell_length if place < len(left) else 0))
        )
        + (right[place] if place < len(right) else Content())
        for place in range(max(len(left), len(right)))
    ]


def _cut(lines: Sequence[Content], room: int, width: int) -> list[Content]:
    """As many lines as there is room for; the last one says how many more there are."""
    if len(lines) > room:
        lines = [*lines[: room - 1], Content.styled(f"and {len(lines) - room + 1:,} more", "$text-muted")]
    return [line.truncate(width, ellipsis=True) for line in lines]


def _members(group: GroupDescription, called: dict[str, str], width: int) -> list[Content]:
    """`width`: of the names. What several members share is the lag of none of them."""
    is_shared = group.type == SHARE
    lags: dict[str | None, int] = {}
    for row in group.partitions:
        if row.lag is not None and row.lag > 0:
            lags[row.consumer_id] = lags.get(row.consumer_id, 0) + row.lag
    head = Content.styled(f"{'MEMBER':<{width}}{'PARTS':>7}{'LAG':>12}", "bold $text-muted")
    rows = sorted(group.members, key=lambda one: -lags.get(one.consumer_id, 0))
    return [head] + [
        Content(
            cells.fitted(called.get(one.consumer_id or "", ""), width)
            + f"{cells.count(one.partitions):>7}{cells.count(None if is_shared else lags.get(one.consumer_id, 0)):>12}"
        )
        for one in rows
    ]


def _partitions(group: GroupDescription, called: dict[str, str], width: int) -> list[Content]:
    """The names of topics have the room that figures and members leave."""
    rows = sorted(group.partitions, key=lambda row: (-(row.lag or 0), row.topic or "", row.partition or 0))
    title = counted(len(rows), "partition").upper()
    members = max((cell_len(_owner(row, called)) for row in rows), default=0)
    names = max(len(title), max((cell_len(cells.name(row.topic)) for row in rows), default=0))
    topic = min(names, max(LEAST_TOPIC, width - PARTITION_FIGURES - members))
    head = Content.styled(f"{title:<{topic}}{'P':>5}{'LAG':>12}  MEMBER", "bold $text-muted")
    return [head] + [
        Content(
            cells.fitted(cells.name(row.topic), topic)
            + f"{cells.count(row.partition):>5}{cells.count(row.lag):>12}  {_owner(row, called)}"
        )
        for row in rows
    ]


def _owner(row: PartitionLag, called: dict[str, str]) -> str:
    return called.get(row.consumer_id or "", "-") if row.consumer_id else "-"
