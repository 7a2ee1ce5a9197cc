"""The panel of the state: the loop of states, the progress of a rebalance, the reason of the verdict, facts."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from textual.app import ComposeResult
from textual.content import Content

from broker.light_dataclasses import dataclass
from kgctl.model.cluster_view import ClusterEvent
from kgctl.model.groups import REBALANCING, GroupDescription
from kgctl.model.health import Health
from kgctl.model.watched import WatchedGroup
from kgctl.tui import cells
from kgctl.tui.widgets.events.lines import event_lines
from kgctl.tui.widgets.frame import glyphs
from kgctl.tui.widgets.frame.looks import look
from kgctl.tui.widgets.frame.panel import Panel
from kgctl.tui.widgets.group.machine import loop, short, state_of
from kgctl.tui.widgets.group.names import names
from kgctl.tui.widgets.group.progress import progress
from kgctl.tui.widgets.text.line import Line, as_fits
from kgctl.watch.figures import counted
from kgctl.watch.tracker import is_gone
from kgctl.watch.visits import Visits

SEPARATOR = f" {glyphs.SEPARATOR} "


@dataclass(frozen=True, slots=True)
class StateNow:
    """`summary` has the verdict, `state_s` the seconds in the state, with `is_least` a lower bound.

    `now_ms` is of the coordinator's clock; `passed_s` is how old the description is. `events` has the newest first.
    """

    group: GroupDescription
    summary: WatchedGroup
    state_s: float | None
    is_least: bool
    now_ms: int
    passed_s: float
    visits: Visits
    events: Sequence[ClusterEvent] = ()


class StatePanel(Panel):
    def __init__(self) -> None:
        super().__init__("State", id="state", least=(50, 4))
        self.lines = StateLines()

    def compose(self) -> ComposeResult:
        yield self.lines

    def show(self, now: StateNow) -> None:
        self.lines.show(now)
        group = now.group
        parts = [f"State: {short(state_of(group))}" if group.error is None or is_gone(group.error) else "State"]
        if group.error is None and now.state_s is not None and not (now.is_least and now.state_s < 1):
            parts[0] += f" for at least {cells.age(now.state_s)}" if now.is_least else f" {cells.age(now.state_s)}"
        self.show_title(*parts, *_more(group))


class StateLines(Line):
    """The lines that fit: the loop, then what matters most, and events in what is left."""

    DEFAULT_CSS = """
    StateLines { height: 1fr; padding: 0; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._now: StateNow | None = None

    def show(self, now: StateNow) -> None:
        self._now = now
        self.refresh()

    def text(self, width: int) -> Content:
        now = self._now
        if now is None:
            return Content()
        lines, height = [*loop(now.group, now.visits, width), *_lines(now, width)], max(1, self.content_size.height)
        shown = _wrapped(lines, width, height - len(lines))[:height]
        return Content("\n").join([*shown, *event_lines(now.events, width, height - len(shown))])


def _wrapped(lines: list[Content], width: int, room: int) -> list[Content]:
    """A line that is too long takes more lines while there are some; else an ellipsis ends it."""
    found = []
    for line in lines:
        parts = wrap(line.plain, width) if line.cell_length > width else []
        if not parts or len(parts) - 1 > room:
            found.append(line.truncate(width, ellipsis=True))
            continue
        style = line.spans[0].style if line.spans else ""
        found += [Content.styled(part, style).truncate(width, ellipsis=True) for part in parts]
        room -= len(parts) - 1
    return found


def _lines(now: StateNow, width: int) -> list[Content]:
    steps = [line for line in progress(now.group, now.now_ms, now.passed_s, width) if line]
    why = [_verdict(now.summary)] if now.summary.health not in (Health.OK, Health.REBALANCING) else []
    if now.group.error is not None:
        return [*steps, _facts(now.group, width)]
    is_moving = now.group.state in REBALANCING
    # A silent member is in the first line of a calm group already, with a countdown.
    if not is_moving and now.summary.health is Health.SILENT:
        why = []
    return [line for line in ([*steps, *why] if is_moving else [*why, *steps]) if line] + [_facts(now.group, width)]


def _verdict(summary: WatchedGroup) -> Content:
    found = look(summary.health)
    reason = cells.name(summary.health_reason) if summary.health_reason else ""
    text = reason if summary.health is None else f"{summary.health.value.lower()}: {reason}"
    return Content.styled(f"{found.glyph} {text}", found.colour) if reason else Content()


def _more(group: GroupDescription) -> list[str]:
    if group.error is not None:
        return []
    if group.group_epoch is not None:
        found = [f"epoch {cells.count(group.group_epoch)}"]
    else:
        found = [f"generation {cells.count(group.generation)}"]
    return [*found, *([cells.name(group.assignment_strategy)] if group.assignment_strategy else [])]


def _facts(group: GroupDescription, width: int) -> Content:
    """Leave a fact out rather than cut it: a cut address names another broker."""
    if group.error is not None:
        return Content()
    facts = []
    if group.group_epoch is None and group.members:
        # In the newer protocols the coordinator assigns; there is no leader.
        leader = names(group.members).get(group.leader or "") or cells.name(group.leader)
        facts.append(f"leader {leader}")
    if group.coordinator:
        facts.append(f"coordinator {cells.name(group.coordinator)}")
    topics = {row.topic for row in group.partitions}
    if topics:
        facts.append(f"{counted(len(group.partitions), 'partition')} of {counted(len(topics), 'topic')}")
    parts = [Content.styled(fact, "$text-muted") for fact in facts]
    return as_fits(Content(), parts, "", SEPARATOR, width)
