"""The help: the keys of a screen, generated from its bindings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

from kgctl.tui.cells import fitted
from kgctl.tui.keys import Key, Section, sections

WIDEST_KEYS = 24
DISABLED = " (disabled)"


class HelpScreen(ModalScreen[None]):
    """The keys of another screen at the time when the help was opened."""

    DEFAULT_CSS = """
    HelpScreen {
        align: center middle;
        & > #keys {
            width: 76; max-width: 100%; height: auto; max-height: 100%; scrollbar-size-vertical: 1;
            background: $surface; border: round $primary; padding: 0 1;
            border-title-color: $foreground; border-subtitle-color: $text-muted;
        }
        & #keys > Static { height: auto; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q", "dismiss", "Back"),
        Binding("down,j", "scroll_keys(1)", "Down", show=False),
        Binding("up,k", "scroll_keys(-1)", "Up", show=False),
        Binding("pagedown,space,ctrl+f,ctrl+d", "page_keys(1)", "Page down", show=False),
        Binding("pageup,ctrl+b,ctrl+u", "page_keys(-1)", "Page up", show=False),
        Binding("home,g", "end_of_keys(-1)", "First", show=False),
        Binding("end,G", "end_of_keys(1)", "Last", show=False),
    ]
    AUTO_FOCUS = ""

    def __init__(self, of: Screen[Any]) -> None:
        super().__init__()
        # Read them now: once this screen is on top, no widget of the other one has the focus.
        self.sections = sections(of)

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="keys", can_focus=False) as keys:
            keys.border_title = "Keys"
            keys.border_subtitle = "Esc to close"
            yield Static(text_of(self.sections), markup=False)

    def action_scroll_keys(self, lines: int) -> None:
        self.query_one("#keys").scroll_relative(y=lines, animate=False)

    def action_page_keys(self, pages: int) -> None:
        keys = self.query_one("#keys")
        keys.scroll_relative(y=pages * max(1, keys.size.height - 1), animate=False)

    def action_end_of_keys(self, direction: int) -> None:
        keys = self.query_one("#keys")
        keys.scroll_to(y=0 if direction < 0 else keys.max_scroll_y, animate=False)


def text_of(found: Sequence[Section]) -> Content:
    """One line per action, with the keys in the first column."""
    all_keys = [" ".join(key.keys) for section in found for key in section.keys]
    width = min(WIDEST_KEYS, max(map(len, all_keys), default=0))
    blocks = [
        Content("\n").join([Content.styled(section.title, "bold"), *_lines(section.keys, width)]) for section in found
    ]
    return Content("\n\n").join(blocks)


def _lines(keys: Sequence[Key], width: int) -> list[Content]:
    return [
        Content.assemble(
            "  ",
            (fitted(" ".join(key.keys), width), "$primary" if key.is_enabled else "$text-muted"),
            "  ",
            key.description if key.is_enabled else (key.description + DISABLED, "$text-muted"),
        )
        for key in keys
    ]
