"""The input line that says where to go in a partition, and what can be typed there."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static

from broker.light_dataclasses import dataclass
from kgctl.client.admin.times import moment_ms
from kgctl.client.net.errors import BadValue

EXAMPLES = "offset, +100, start, end, 12:30, now-15m, 2026-01-31T12:00, group:NAME, TOPIC:PARTITION"
CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")
PARTITION = re.compile(r"([A-Za-z0-9._-]{1,249}):(\d{1,6})", re.ASCII)
GROUP = "group:"
# Longer numbers are times in ms.
MOST_DIGITS = 11


@dataclass(frozen=True, slots=True)
class Destination:
    """Another place in the partition, or another partition; `by` is relative to the record under the cursor."""

    offset: int | None = None
    by: int | None = None
    time_ms: int | None = None
    group: str | None = None
    is_start: bool = False
    topic: str | None = None
    partition: int | None = None


def parse(text: str, now_ms: int) -> Destination:
    """Without anything else set, the end of the log. Raises BadValue."""
    typed = text.strip()
    if typed in ("end", "start"):
        return Destination(is_start=typed == "start")
    if re.fullmatch(rf"\d{{1,{MOST_DIGITS}}}", typed, re.ASCII):
        return Destination(offset=int(typed))
    if re.fullmatch(rf"[+-]\d{{1,{MOST_DIGITS}}}", typed, re.ASCII):
        return Destination(by=int(typed))
    if typed.startswith(GROUP) and typed != GROUP:
        return Destination(group=typed.removeprefix(GROUP))
    if (found := CLOCK.fullmatch(typed)) is not None:
        return Destination(time_ms=_today(found, now_ms))
    try:
        return Destination(time_ms=moment_ms(typed, now_ms))
    except BadValue:
        if (found := PARTITION.fullmatch(typed)) is not None:
            return Destination(topic=found[1], partition=int(found[2]))
        raise BadValue(f"write {EXAMPLES}") from None


def _today(found: re.Match[str], now_ms: int) -> int:
    day = datetime.fromtimestamp(now_ms / 1000, UTC)
    try:
        moment = day.replace(hour=int(found[1]), minute=int(found[2]), second=int(found[3] or 0), microsecond=0)
    except ValueError:
        raise BadValue(f"{found[0]} is not a time of day") from None
    return int(moment.timestamp() * 1000)


class JumpBar(Horizontal):
    """Hidden unless the user types."""

    DEFAULT_CSS = """
    JumpBar {
        height: 1; display: none; padding: 0 1; background: $panel;
        &.-visible { display: block; }
        & > #jump-title { width: auto; color: $primary; text-style: bold; }
        & > Input { width: 1fr; min-width: 12; background: $panel; color: $foreground; }
        & > #jump-note { width: auto; max-width: 80%; height: 1; padding-left: 1; color: $text-error; text-wrap: nowrap; text-overflow: ellipsis; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "go", "Go", priority=True, key_display="enter"),
        Binding("escape", "leave", "Back"),
    ]

    class Submitted(Message):
        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Left(Message):
        pass

    def compose(self) -> ComposeResult:
        yield Static("go to ", id="jump-title", markup=False)
        yield Input(compact=True, select_on_focus=False, placeholder=EXAMPLES)
        yield Static("", id="jump-note", markup=False)

    def open(self) -> None:
        typed = self.query_one(Input)
        typed.value = ""
        self.refuse("")
        self.set_class(True, "-visible")
        # Widget.focus would take effect later; the next key already belongs to this input.
        self.screen.set_focus(typed)

    def refuse(self, reason: str) -> None:
        """Say why the text leads nowhere."""
        self.query_one("#jump-note", Static).update(reason)

    def close(self) -> None:
        self.set_class(False, "-visible")

    def action_go(self) -> None:
        self.post_message(self.Submitted(self.query_one(Input).value))

    def action_leave(self) -> None:
        self.close()
        self.post_message(self.Left())
