"""The base of dialogs that change something: a plan, consent to it, the outcome, and the same change as a command."""

from __future__ import annotations

import asyncio
import time
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any, ClassVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Button, Input, Static

from kgctl.client.net.errors import KgctlError
from kgctl.journal.keeping import Keeper, origin_of
from kgctl.render.table import printable
from kgctl.tui import command_line
from kgctl.tui.dialogs.body import Body
from kgctl.tui.dialogs.early_keys import EarlyKeys
from kgctl.tui.dialogs.outcomes import Changed, ended, is_refusal, may_have_changed, unchanged
from kgctl.tui.feed.protocol import Feed
from kgctl.tui.widgets.table.rows import Rows

READ_ONLY = "Read-only: this is a preview, and nothing can be changed."
UNREAD = "Read the plan first."
UNDER_WAY = "The change is in progress. Wait for its outcome."
LEAVING = "The change is in progress. Press the key again to quit without its outcome."


class Stage(Enum):
    PLANNING = "planning"
    PLANNED = "planned"
    REFUSED = "refused"
    CHANGING = "changing"
    CHANGED = "changed"


class PlanDialog(ModalScreen[bool]):
    """One change of one group or of several. The result is True if something was changed or may have been changed.

    Nothing is chosen in advance, and no key acts before the plan could be read: what a fast typist or a paste sends goes
    to the first input.
    """

    DEFAULT_CSS = """
    PlanDialog {
        align: center middle;
        & > #frame {
            width: 100%; max-width: 116; height: 100%; max-height: 34;
            background: $surface; border: round $primary; padding: 0 1;
            border-subtitle-color: $text-muted;
        }
        & #title { height: auto; max-height: 2; text-style: bold; }
        & #body { height: 1fr; scrollbar-size-vertical: 1; background: $surface; }
        & .line { height: auto; }
        & .line > .label { width: 11; color: $text-muted; }
        & .line > Input { width: 1fr; }
        & Input { background: $panel; }
        & Rows { height: 1fr; min-height: 5; }
        & #message { height: auto; margin: 1 0; }
        & #message.-error { color: $text-error; }
        & #message.-warning { color: $text-warning; }
        & #message.-good { color: $text-success; }
        & #detail { height: auto; min-height: 1; color: $text-muted; }
        & #totals { height: auto; min-height: 1; text-style: bold; }
        & #command { height: auto; color: $text-muted; }
        & #consent { height: auto; max-height: 6; }
        & #buttons { height: 1; margin-top: 1; }
        & #buttons Button { min-width: 0; margin-right: 2; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "close", "Close"),
        Binding("y", "copy", "Copy as a kgctl command"),
        Binding("ctrl+y", "copy", "Copy, also from an input", show=False),
        Binding("ctrl+r", "plan", "Plan again", priority=True),
        Binding("question_mark", "app.help", "Help", show=False),
    ]
    DEBOUNCE_S: ClassVar[float] = 0.25
    # A plan that is younger cannot have been read.
    READING_S = 0.4
    NAME: ClassVar[str] = ""
    WORKING: ClassVar[str] = "changing"
    # Whether a name must be typed on every cluster, or only for several groups and where the context asks for it.
    ASKS_NAME: ClassVar[bool] = False
    KEYS: ClassVar[str] = "y or ^y copy - ^r plan again - Esc close"

    def __init__(self, feed: Feed, groups: str | Sequence[str], read_only: bool = False) -> None:
        super().__init__()
        self.feed = feed
        self.groups = (groups,) if isinstance(groups, str) else tuple(groups)
        self.read_only = read_only or feed.cluster.read_only
        self.stage = Stage.PLANNING
        self.was_changed = False
        self._began_s = self._planned_s = 0.0
        self._was_warned = False
        self._warnings: list[str] = []
        self.early_keys = EarlyKeys()

    @property
    def is_bulk(self) -> bool:
        return len(self.groups) > 1

    # ---- implemented by each dialog

    @abstractmethod
    def form(self) -> Iterable[Widget]:
        """The inputs above the plan."""

    @abstractmethod
    def table(self) -> Rows[Any]: ...

    def consent(self) -> Iterable[Widget]:
        """Inputs for consent above the buttons. By default, pressing the button is the consent."""
        return ()

    @abstractmethod
    async def preview(self) -> None:
        """Request the plan, show it and `enter` a stage. May raise a KgctlError."""

    @abstractmethod
    async def carry_out(self) -> None:
        """Execute the current plan, show the outcome and `enter` CHANGED. May raise a KgctlError."""

    @abstractmethod
    def obstacle(self) -> str:
        """Why the current plan cannot be executed yet; empty if it can."""

    @abstractmethod
    def verb(self) -> str:
        """The label of the button that executes the plan."""

    @abstractmethod
    def words(self) -> list[str]:
        """The same change as the words of a command; none while an input is missing."""

    @abstractmethod
    def detail(self, row: Any) -> str:
        """The full text of a row whose cells may be cut."""

    def changing(self) -> Sequence[str]:
        """The names of what the current plan would change."""
        return self.groups

    def is_futile(self) -> bool:
        """Whether nothing of the plan can be changed: no button and no command are offered for it."""
        return False

    def command(self) -> str:
        """The same change as a shell command; empty while an input is missing."""
        return "" if self.is_futile() else command_line.line(self.words())

    # ---- a name or a number as consent

    @property
    def asks_name(self) -> bool:
        return self.ASKS_NAME or self.is_bulk or self.feed.cluster.must_confirm

    def consent_word(self) -> tuple[str, str]:
        """What to type, and what that is: a name, for several the name of a context that asks for names, or their number."""
        names, cluster = self.changing(), self.feed.cluster
        if len(names) == 1 or not names:
            return (names[0] if names else ""), "the group id"
        if cluster.must_confirm and cluster.context:
            return cluster.context, "the name of the context"
        return str(len(names)), "the number of groups"

    def missing_name(self) -> str:
        """What to type before the plan can be executed; empty if it is there."""
        if not self.asks_name:
            return ""
        word, what = self.consent_word()
        if word and self.query_one("#name", Input).value in (word, printable(word)):
            return ""
        return f"Type {what} to consent: {word}"

    def discard_consent(self) -> None:
        if self.asks_name:
            with self.prevent(Input.Changed):
                self.query_one("#name", Input).value = ""
            self.show_state()

    @on(Input.Changed, "#name")
    def _type_name(self, event: Input.Changed) -> None:
        event.stop()
        self.show_state()

    @on(Input.Submitted, "#name")
    def _submit_name(self, event: Input.Submitted) -> None:
        event.stop()
        self.execute()

    # ---- the frame

    def heading(self) -> str:
        what = f"{len(self.groups):,} groups" if self.is_bulk else f"group '{printable(self.groups[0])}'"
        return f"{self.NAME} {what}"

    def compose(self) -> ComposeResult:
        with Vertical(id="frame") as frame:
            frame.border_subtitle = self.KEYS
            frame.border_title = self.feed.cluster.context
            yield Static(self.heading(), id="title", markup=False)
            with Body(id="body"):
                yield from self.form()
                yield Static(id="message", markup=False)
                yield self.table()
                yield Static(id="detail", markup=False)
                yield Static(id="totals", markup=False)
                yield Static(id="command", markup=False)
            with Vertical(id="consent"):
                yield from self.consent()
                if self.asks_name:
                    yield Static(id="ask", markup=False)
                    yield Input(compact=True, select_on_focus=False, id="name", disabled=self.read_only)
            with Horizontal(id="buttons"):
                yield Button("", id="execute", variant="warning", compact=True)
                yield Button("Copy as command", id="copy", compact=True)
                yield Button("Close", id="close", compact=True)

    def on_mount(self) -> None:
        self.set_interval(1.0, self._show_elapsed)
        self.plan_again(0.0)

    def plan_again(self, delay_s: float | None = None) -> None:
        """Discard the current plan and pending requests; plan again when the user has stopped typing for a moment."""
        if self.stage is Stage.CHANGING:
            return
        self.enter(Stage.PLANNING)
        self.say_totals("planning ...")
        self._plan_after(self.DEBOUNCE_S if delay_s is None else delay_s)

    @work(group="plan", exclusive=True)
    async def _plan_after(self, delay_s: float) -> None:
        if delay_s:
            await asyncio.sleep(delay_s)
        try:
            await self.preview()
        except KgctlError as error:
            self.refuse(str(error))

    def enter(self, stage: Stage) -> None:
        if stage is Stage.PLANNED:
            self._planned_s = time.monotonic()
        self.stage = stage
        self.show_state()

    def show_state(self) -> None:
        """Update buttons and the command from the inputs and the plan."""
        execute = self.query_one("#execute", Button)
        execute.label = f"{self.verb()}: read-only" if self.read_only else self.verb()
        execute.disabled = (
            self.read_only or self.stage is not Stage.PLANNED or bool(self.obstacle() or self.missing_name())
        )
        execute.variant = "default" if execute.disabled else "warning"
        execute.display = not self.is_futile()
        if self.asks_name:
            self._show_consent()
        line = self.command()
        self.query_one("#copy", Button).disabled = not line
        self.query_one("#command", Static).update(f"As a command: {line}" if line else "")
        is_changing = self.stage is Stage.CHANGING
        for control in self.query("#body Input, #body Select, #body Checkbox, #consent Input, #consent Checkbox"):
            control.disabled = is_changing or (control.id == "name" and self.read_only) or self.is_idle(control)

    def _show_consent(self) -> None:
        word, what = self.consent_word()
        is_over = self.stage is Stage.CHANGED or not word
        text = "" if is_over else f"To execute, type {what} and press Enter: {printable(word)}"
        self.query_one("#ask", Static).update(text)
        self.query_one("#name", Input).placeholder = "" if is_over else what

    def is_idle(self, control: Widget) -> bool:
        """Whether a control has no meaning with the current inputs."""
        return False

    def say(self, sentence: str, kind: str = "") -> None:
        """Show one sentence above the plan; `kind` is "error", "warning", "good" or ""."""
        prefix = {"error": "Error: ", "warning": "Note: "}.get(kind, "")
        message = self.query_one("#message", Static)
        message.set_classes(f"-{kind}" if kind else "")
        message.update(printable(prefix + sentence) if sentence else "")

    def say_totals(self, sentence: str) -> None:
        self.query_one("#totals", Static).update(printable(sentence))

    def refuse(self, sentence: str, kind: str = "error") -> None:
        """Show why there is no plan."""
        self.query_one("#plan", Rows).show([])
        self.say_totals("")
        self.say(sentence, kind)
        self.enter(Stage.REFUSED)

    # ---- the change

    def execute(self) -> None:
        if self.read_only:
            self.say(READ_ONLY, "warning")
        elif self.stage is Stage.PLANNING:
            self.say("The plan is not ready yet. Review it first.", "warning")
        elif self.stage is Stage.PLANNED and (missing := self.obstacle() or self.missing_name()):
            self.say(missing, "warning")
        elif self.stage is Stage.PLANNED and time.monotonic() - self._planned_s < self.READING_S:
            self.say(UNREAD, "warning")
        elif self.stage is Stage.PLANNED:
            self._began_s, self._was_warned = time.monotonic(), False
            started_from = self.focused
            self.enter(Stage.CHANGING)
            self._show_elapsed()
            self.run_worker(self._carry_out(started_from), group="change")

    async def _carry_out(self, started_from: Widget | None) -> None:
        try:
            await self.carry_out()
            self.discard_consent()
        except KgctlError as error:
            if is_refusal(error):
                self.say(unchanged(str(error)), "error")
                self.enter(Stage.PLANNED)
            else:
                # The plan may be partly executed, so it must not be offered again.
                self.was_changed = True
                self.say(
                    f"{ended(str(error))} Part of the plan may have been executed; press ^r to plan again.", "error"
                )
                self.enter(Stage.REFUSED)
        for sentence in self._warnings:
            self.notify(f"Warning: {ended(sentence)}", severity="warning", markup=False)
        self._warnings.clear()
        # The control that started the change was disabled meanwhile and has lost the focus.
        if self.stage is Stage.PLANNED and started_from is not None:
            started_from.focus()
        else:
            self.query_one("#close", Button).focus()

    def keeper(self) -> Keeper:
        """Keeps the change in the journal of the command line. It is for the thread that makes the change."""
        cluster = self.feed.cluster
        origin = origin_of(cluster.address, cluster.context, self.words())
        return Keeper(origin, self._warnings.append, way_out=". Free or fix it")

    def note_outcome(self, rows: Sequence[Changed]) -> None:
        self.was_changed |= any(row.error is None or may_have_changed(row.error.name) for row in rows)

    def _show_elapsed(self) -> None:
        if self.stage is Stage.CHANGING:
            self.say(f"{self.WORKING[0].upper()}{self.WORKING[1:]}: {time.monotonic() - self._began_s:.0f} s")

    # ---- keys and mouse

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        # Before the first control has the focus, keys are text that comes early.
        if action in ("copy", "app.help") and not self.early_keys.are_over:
            return False
        return super().check_action(action, parameters)

    def on_key(self, event: events.Key) -> None:
        if self.early_keys.take(event):
            event.stop()

    def on_descendant_focus(self, event: events.DescendantFocus) -> None:
        self.early_keys.give(event.widget)

    def action_close(self) -> None:
        if self.stage is Stage.CHANGING:
            self.notify(UNDER_WAY, severity="warning", markup=False)
            return
        self.workers.cancel_group(self, "plan")  # its rows would have no place
        self.dismiss(self.was_changed)

    def blocks_quit(self) -> bool:
        """Whether quitting must wait for the outcome of a change. True only once per change, so that a second key quits."""
        if self.stage is not Stage.CHANGING or self._was_warned:
            return False
        self._was_warned = True
        self.notify(LEAVING, severity="warning", markup=False)
        return True

    def action_plan(self) -> None:
        self.plan_again(0.0)

    def action_copy(self) -> None:
        if line := self.command():
            self.app.copy_to_clipboard(line)
            self.notify("Copied the command to the terminal's clipboard.", markup=False)

    def on_button_pressed(self, event: Button.Pressed) -> None:
        event.stop()
        {"execute": self.execute, "copy": self.action_copy, "close": self.action_close}[event.button.id or ""]()

    def on_rows_moved(self, event: Rows.Moved) -> None:
        event.stop()
        if event.rows.id == "plan":
            self.query_one("#detail", Static).update("" if event.row is None else printable(self.detail(event.row)))
