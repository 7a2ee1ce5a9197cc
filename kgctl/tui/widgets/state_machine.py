"""The states a group can be in with the present one lit, what is known of it, and where each member stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual.app import RenderResult
from textual.widget import Widget

from kgctl.model.groups import CONSUMER, REBALANCING, SHARE, STATES, GroupDescription
from kgctl.tui import cells
from kgctl.tui.widgets.standing import SIGNS, UNKNOWN, is_awaited, names, sentence, word_of
from kgctl.watch.phases import STABLE, SYNCED, standings
from kgctl.watch.track import is_gone

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
    """Four lines: the states, the facts, who is awaited, each member. Without an answer it is blank."""

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
        """`state_s`: seconds in the state, `is_least` if they may be more; `now_ms` by the clock of `state_since_ms`."""
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
        told = names(group.members)
        each = [(told[one.member.consumer_id or ""], word_of(group, one)) for one in standings(group)]
        if group.error is not None or all(word is None for _, word in each):
            return Text()
        shown = _fitting(group, each, width)
        awaited = self.get_component_rich_style("machine--awaited", partial=True)
        text = Text()
        for place, (name, word) in enumerate(shown):
            text.append("   " if place else "")
            text.append(_chip(group, name, word), awaited if is_awaited(group, word) else "")
        if len(shown) < len(each):
            text.append(f"   and {len(each) - len(shown):,} more")
        return text


def state_of(group: GroupDescription) -> str | None:
    """A group that is not there is Dead, as Kafka calls it; one that cannot be asked may have no state."""
    return DEAD if is_gone(group.error) else group.state


def path_of(group: GroupDescription) -> Sequence[str]:
    """The states that groups of this type go through, in order, without Dead; a state of no path stands alone."""
    path = PATHS.get(group.type or "", CLASSIC_STATES)
    now = state_of(group)
    return path if now is None or now in (*path, DEAD) else (now,)


def facts(group: GroupDescription, state_s: float | None, width: int, *, is_least: bool) -> str:
    """The time in the state, generation, leader, protocol and coordinator, with fewer words where they do not fit; `-` is not told."""
    if is_gone(group.error):
        return ""
    if group.error is not None and group.state is None:
        return "Its state is not known."
    leader = names(group.members).get(group.leader or "") or cells.name(group.leader)
    protocol, coordinator = cells.name(group.assignment_strategy), cells.name(group.coordinator)
    if group.group_epoch is None:
        said = [
            f"generation {cells.count(group.generation)}",
            f"leader {cells.fitted(leader, min(cell_len(leader), NAME_WIDTH))}",
        ]
    else:
        # Of the newer protocols the coordinator itself is what a leader was.
        said = [f"epoch {cells.count(group.group_epoch)}"]
    if state_s is not None and not (is_least and state_s < 1):
        said = [f"for {'at least ' if is_least else ''}{cells.duration(state_s)}", *said]
    text = " \u00b7 ".join([*said, f"protocol {protocol}", f"coordinator {coordinator}"])
    if cell_len(text) > width:
        said.append(protocol if group.assignment_strategy else "protocol -")
        text = " \u00b7 ".join([*said, f"on {coordinator}"])
    # An address that is cut is the address of another broker.
    return text if cell_len(text) <= width else " \u00b7 ".join(said)


def _light(state: str) -> str:
    if state in REBALANCING:
        return "moving"
    return {"Stable": "calm", DEAD: "gone"}.get(state, "other") if state in STATES else "other"


def _chip(group: GroupDescription, name: str, word: str | None) -> str:
    said = f"{SIGNS.get(word or '', UNKNOWN)} {cells.fitted(name, min(cell_len(name), NAME_WIDTH))}"
    # Where a group is Stable, being in step is not worth a word.
    return said if group.state == "Stable" and word in (SYNCED, STABLE) else f"{said} {cells.name(word)}"


def _fitting(
    group: GroupDescription, each: Sequence[tuple[str, str | None]], width: int
) -> Sequence[tuple[str, str | None]]:
    """All if they fit; else those that are awaited first, as many as leave room to say how many more there are."""
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
