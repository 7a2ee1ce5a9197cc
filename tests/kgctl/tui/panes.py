"""An app with a single pane, and prepared assignments and partitions to show in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from rich.console import RenderableType
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widget import Widget

from kgctl.model.failure import RowError
from kgctl.model.groups import by_topic
from kgctl.model.topic_partition import TopicPartition
from kgctl.model.watched import Assignment, WatchedPartition
from kgctl.tui.themes import DARK, THEMES

W = TypeVar("W", bound=Widget)


class Host(App[None], Generic[W]):
    """An app whose screen is one pane. `fill` sets its contents before it is mounted."""

    CSS = "Screen { background: $surface; color: $foreground; }"

    def __init__(self, pane: W, fill: Callable[[W], None] = lambda _: None, theme: str = DARK.name) -> None:
        super().__init__()
        self.pane = pane
        self.redraws = 0  # how often the app wrote to the terminal
        fill(pane)
        for one in THEMES:
            self.register_theme(one)
        self.theme = theme

    def compose(self) -> ComposeResult:
        yield self.pane

    def on_mount(self) -> None:
        self.pane.focus()

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        self.redraws += renderable is not None
        super()._display(screen, renderable)


class PaneScene(Generic[W]):
    """What a pane shows, and what a user does."""

    def __init__(self, app: Host[W], pilot: Pilot[None]) -> None:
        self.app, self.pane, self._pilot = app, app.pane, pilot

    @property
    def lines(self) -> list[str]:
        return [strip.text for strip in self.app.screen._compositor.render_strips()]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    async def press(self, *keys: str) -> None:
        await self._pilot.press(*keys)
        await self._pilot.pause()


def assigned(**members: str) -> Assignment:
    """assigned(a="orders:0-2,5 payments:0", b="")."""
    return {member: by_topic(_partitions(text)) for member, text in members.items()}


def _partitions(text: str) -> list[TopicPartition]:
    found = []
    for topic, numbers in (one.split(":") for one in text.split()):
        for one in numbers.split(","):
            first, _, last = one.partition("-")
            found += [TopicPartition(topic, number) for number in range(int(first), int(last or first) + 1)]
    return found


def dealt(members: int, partitions: int, skip: frozenset[int] = frozenset()) -> Assignment:
    """Partitions of "orders" dealt in turn to worker-00, worker-01, ... except those in `skip`."""
    hands: dict[str, list[TopicPartition]] = {
        f"worker-{n:02}-{n:08x}-1111": [] for n in range(members) if n not in skip
    }
    names = list(hands)
    # The partitions of skipped members go to the others; all other partitions stay.
    for number in range(partitions):
        at = number % members
        member = f"worker-{at:02}-{at:08x}-1111"
        hands[member if member in hands else names[number % len(names)]].append(("orders", number))
    return {member: by_topic(some) for member, some in hands.items()}


def row(topic: str = "orders", partition: int = 0, **values: object) -> WatchedPartition:
    """A partition with 80 records/s in and 100 records/s out, changed by `values`."""
    usual: Mapping[str, object] = {
        "consumer_id": "worker-1-aaaa",
        "client_id": "worker-1",
        "committed": 9_000,
        "log_end": 10_200,
        "lag": 1_200,
        "lags": tuple(range(2_000, 1_199, -100)),
        "rate_in": 80.0,
        "rate_out": 100.0,
        "eta_s": 60.0,
    }
    return WatchedPartition(topic=topic, partition=partition, **{**usual, **values})  # type: ignore[arg-type]


FAILED = {
    "committed": None,
    "log_end": None,
    "lag": None,
    "lags": (),
    "rate_in": None,
    "rate_out": None,
    "eta_s": None,
    "error": RowError("LEADER_NOT_AVAILABLE", "its leader is not available (LEADER_NOT_AVAILABLE)"),
}
UNCOMMITTED = {
    "committed": None,
    "lag": None,
    "lags": (),
    "rate_in": None,
    "rate_out": None,
    "eta_s": None,
    "consumer_id": None,
    "client_id": None,
}
