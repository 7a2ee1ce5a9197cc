"""The state machine of a group with the current state highlighted, facts about the group, and the phase of each member."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual.app import RenderResult
from textual.widget import Widget

from kgctl.model.groups import CONSUMER, REBALANCING, SHARE, STATES, GroupDescription
from kgctl.tui import cells
from kgctl.tui.widgets.group.progress import SIGNS, UNKNOWN, is_awaited, names, sentence, shown_phase
from kgctl.watch.phases import STABLE, SYNCED, member_phases
from kgctl.watch.tracker import is_gone

LIT = "\u25cf"
ARROW = "\u2500\u25b6"
DEAD = "Dead"
CLASSIC_STATES = ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable")
PATHS = {
    CONSUMER: ("Empty", "Assigning", "Reconciling", "Stable"),
    SHARE: ("Empty", "Stable"),
    "Streams": ("NotReady", "Empty", "Assigning", "Reconciling", "Stable"),
}
NAME_WIDTH = 24


class StateMachine(Widget):
    """Four lines: states, facts, progress of the rebalance, members. Blank until the first answer."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"machine--{name}" for name in ("calm", "moving", "gone", "other", "awaited", "muted", "strong")
    }
    DEFAULT_CSS = """
    StateMachine {
        height: 4;
        padding: 0 1;
        & > .machine--calm { color: $background; background: $success; text-style: bold; }
        & > .machine--moving { color: $background; background: $warning; text-style: bold; }
        & > .machine--gone { color: $background; background: $error; text-style: bold; }
        & > .machine--other { color: $background; background: $secondary; text-style: bold; }
        & > .machine--awaited { color: $text-warning; text-style: bold; }
        & > .machine--muted { color: $secondary; }
        & > .machine--strong { text-style: bold; }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._group: GroupDescription | None = None
        self._state_s: float | None = None
        self._is_least = False
        self._now_ms = 0

    def show(self, group: GroupDescription, state_s: float | None, now_ms: int, *, is_least: bool = False) -> None:
        """`state_s` is the time in the state in seconds, with `is_least` a lower bound; `now_ms` is of the coordinator's clock."""
        self._group, self._state_s, self._now_ms, self._is_least = group, state_s, now_ms, is_least
        self.refresh()

    def render(self) -> RenderResult:
        group, width = self._group, self.size.width
        if group is None:
            return ""
        lines = (
            self._states(group),
            Text(facts(group, self._state_s, width, is_least=self._is_least)),
            self._sentence(group),
            self._members(group, width),
        )
        for line in lines:
            line.truncate(width, overflow="ellipsis")
        return Text("\n", no_wrap=True).join(lines)

    def _states(self, group: GroupDescription) -> Text:
        now = state_of(group)
        path = path_of(group)
        text, muted = Text(), self.get_component_rich_style("machine--muted", partial=True)
        for place, state in enumerate(path):
            if place:
                text.append(f"{ARROW} ", muted)
            self._state(text, state, now)
        text.append("  ")
        self._state(text, DEAD, now)
        return text

    def _state(self, text: Text, state: str, now: str | None) -> None:
        if state == now:
            text.append(
                f"{LIT} {cells.name(state)}", self.get_component_rich_style(f"machine--{_light(state)}", partial=True)
            )
            text.append(" ")
        else:
            text.append(f"  {state} ", self.get_component_rich_style("machine--muted", partial=True))

    def _sentence(self, group: GroupDescription) -> Text:
        return Text(sentence(group, self._now_ms), self.get_component_rich_style("machine--strong", partial=True))

    def _members(self, group: GroupDescription, width: int) -> Text:
        called = names(group.members)
        each = [(called[one.member.consumer_id or ""], shown_phase(group, one)) for one in member_phases(group)]
        if group.error is not None or all(phase is None for _, phase in each):
            return Text()
        shown = _fitting(group, each, width)
        awaited = self.get_component_rich_style("machine--awaited", partial=True)
        text = Text()
        for place, (name, phase) in enumerate(shown):
            text.append("   " if place else "")
            text.append(_chip(group, name, phase), awaited if is_awaited(group, phase) else "")
        if len(shown) < len(each):
            text.append(f"   and {len(each) - len(shown):,} more")
        return text


def state_of(group: GroupDescription) -> str | None:
    """The state; Dead, as in Kafka, for a group that does not exist; None if the group could not be described."""
    return DEAD if is_gone(group.error) else group.state


def path_of(group: GroupDescription) -> Sequence[str]:
    """The states of groups of this type in order, without Dead. An unexpected state is shown alone."""
    path = PATHS.get(group.type or "", CLASSIC_STATES)
    now = state_of(group)
    return path if now is None or now in (*path, DEAD) else (now,)


def facts(group: GroupDescription, state_s: float | None, width: int, *, is_least: bool) -> str:
    """Time in the state, generation, leader, protocol and coordinator, abbreviated if they do not fit; `-` is not reported."""
    if is_gone(group.error):
        return ""
    if group.error is not None and group.state is None:
        return "The state is not known."
    leader = names(group.members).get(group.leader or "") or cells.name(group.leader)
    protocol, coordinator = cells.name(group.assignment_strategy), cells.name(group.coordinator)
    if group.group_epoch is None:
        parts = [
            f"generation {cells.count(group.generation)}",
            f"leader {cells.fitted(leader, min(cell_len(leader), NAME_WIDTH))}",
        ]
    else:
        # In the newer protocols the coordinator assigns; there is no leader.
        parts = [f"epoch {cells.count(group.group_epoch)}"]
    if state_s is not None and not (is_least and state_s < 1):
        parts = [f"for {'at least ' if is_least else ''}{cells.duration(state_s)}", *parts]
    text = " \u00b7 ".join([*parts, f"protocol {protocol}", f"coordinator {coordinator}"])
    if cell_len(text) > width:
        parts.append(protocol if group.assignment_strategy else "protocol -")
        text = " \u00b7 ".join([*parts, f"on {coordinator}"])
    # Leave the address out rather than cut it: a cut address names another broker.
    return text if cell_len(text) <= width else " \u00b7 ".join(parts)


def _light(state: str) -> str:
    if state in REBALANCING:
        return "moving"
    return {"Stable": "calm", DEAD: "gone"}.get(state, "other") if state in STATES else "other"


def _chip(group: GroupDescription, name: str, phase: str | None) -> str:
    text = f"{SIGNS.get(phase or '', UNKNOWN)} {cells.fitted(name, min(cell_len(name), NAME_WIDTH))}"
    # In a Stable group, a member that is in sync needs no phase.
    return text if group.state == "Stable" and phase in (SYNCED, STABLE) else f"{text} {cells.name(phase)}"


def _fitting(
    group: GroupDescription, each: Sequence[tuple[str, str | None]], width: int
) -> Sequence[tuple[str, str | None]]:
    """All members if they fit; else as many as fit with a count of the others, those that the group waits for first."""
    lengths = [cell_len(_chip(group, *one)) + 3 for one in each]
    if sum(lengths) - 3 <= width:
        return each
    order = sorted(range(len(each)), key=lambda place: not is_awaited(group, each[place][1]))
    room, shown = width - len("and 99,999 more"), []
    for place in order:
        room -= lengths[place]
        if room < 0:
            break
        shown.append(each[place])
    return shown
