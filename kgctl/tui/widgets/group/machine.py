"""The states of a group as a loop in two lines: the current state and the last transition lit, the time in each state below it."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content

from kgctl.model.groups import CONSUMER, REBALANCING, SHARE, STATES, GroupDescription
from kgctl.tui import cells
from kgctl.tui.widgets.frame import glyphs
from kgctl.watch.tracker import is_gone
from kgctl.watch.visits import Visits

DEAD = "Dead"
CLASSIC_STATES = ("Empty", "PreparingRebalance", "CompletingRebalance", "Stable")
PATHS = {
    CONSUMER: ("Empty", "Assigning", "Reconciling", "Stable"),
    SHARE: ("Empty", "Stable"),
    "Streams": ("NotReady", "Empty", "Assigning", "Reconciling", "Stable"),
}
SHORT = {"PreparingRebalance": "Preparing", "CompletingRebalance": "Completing"}
FORWARD, FORWARD_LIT, BACK_LIT = (
    f"{glyphs.DASH}{glyphs.RIGHT}",
    f"{glyphs.DOUBLE}{glyphs.RIGHT}",
    f"{glyphs.LEFT}{glyphs.DOUBLE}",
)
LIT, MUTED = "bold $text-warning", "$text-muted"


def state_of(group: GroupDescription) -> str | None:
    """The state; Dead, as in Kafka, for a group that does not exist; None if the group could not be described."""
    return DEAD if is_gone(group.error) else group.state


def path_of(group: GroupDescription) -> Sequence[str]:
    """The states of groups of this type in order. An unexpected state, or Dead, is shown alone."""
    path = PATHS.get(group.type or "", CLASSIC_STATES)
    now = state_of(group)
    return path if now is None or now in path else (now,)


def short(state: str | None) -> str:
    return SHORT.get(state or "", cells.name(state))


def loop(group: GroupDescription, found: Visits, width: int) -> list[Content]:
    """Two lines: the states with arrows, and under each the time in it, on the arrow that leads back to a rebalance."""
    now, path = state_of(group), list(path_of(group))
    while len(path) > 1 and path[0] != now and _length(path) > width:
        del path[0]
    states, at = Content(), []
    for place, state in enumerate(path):
        if place:
            states += " " + _edge(path[place - 1], state, now, found.came_from) + " "
        at.append(states.cell_length)
        is_now = state == now
        sign = glyphs.GOOD if is_now else glyphs.UNUSED
        states += Content.styled(f"{sign} {short(state)}", style_of(state) if is_now else MUTED)
    return [states, _below(path, at, found, now)]


def style_of(state: str) -> str:
    if state in REBALANCING:
        return "bold $text-warning"
    if state == "Stable":
        return "bold $text-success"
    return "bold $text-error" if state == DEAD or state not in STATES else "bold"


def _length(path: Sequence[str]) -> int:
    return sum(len(short(state)) + 2 for state in path) + 4 * (len(path) - 1)


def _edge(start: str, end: str, now: str | None, came_from: str | None) -> Content:
    if end == now and start == came_from:
        return Content.styled(FORWARD_LIT, LIT)
    if start == now and end == came_from and start == "Empty":
        return Content.styled(BACK_LIT, LIT)
    return Content.styled(FORWARD, MUTED)


def _below(path: Sequence[str], at: Sequence[int], found: Visits, now: str | None) -> Content:
    """The times, on a line from the end of the last state back to the first state of a rebalance."""
    start = next((place for place, state in enumerate(path) if state in REBALANCING), None)
    end = at[-1] + len(short(path[-1])) + 3
    if start is None or start == len(path) - 1:
        text = Content(" " * end)
    else:
        is_lit = now == path[start] and found.came_from == path[-1]
        line, corner = (glyphs.DOUBLE, glyphs.CORNER_LIT) if is_lit else (glyphs.DASH, glyphs.CORNER)
        back = glyphs.UP + line * (end - at[start] - 1) + corner
        text = " " * at[start] + Content.styled(back, LIT if is_lit else MUTED)
    for column, state in zip(at, path, strict=True):
        if state in found.spent_s:
            time = f" {cells.age(found.spent_s[state])} "
            rest = text[column + 1 + len(time) :] if text.cell_length > column + 1 + len(time) else Content()
            text = text[: column + 1] + Content.styled(time, style_of(state) if state == now else "") + rest
    return text
