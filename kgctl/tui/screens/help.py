"""The help: the keys of a screen, generated from its bindings."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import Any, ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

from kgctl.tui.cells import fitted
from kgctl.tui.keys import Key, Section, sections
from kgctl.tui.widgets.frame import glyphs

WIDEST_KEYS = 24
DISABLED = " (disabled)"
# The width of one column and of two with their frame; from when there is room for two.
WIDEST, BESIDE = (76, 148), 110
# The cells of a frame, of its padding with a scroll bar, and between two columns.
FRAME, MARGIN, BETWEEN = 2, 3, 2
MORE = f"{glyphs.DOWN} more - "


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
        &.-beside #keys { width: 148; }
        & #columns { height: auto; }
        & #columns > Static { height: auto; width: 1fr; }
        &.-beside #columns > #first { padding-right: 2; }
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
            with Horizontal(id="columns"):
                yield Static(id="first", markup=False)
                yield Static(id="second", markup=False)

    def on_mount(self) -> None:
        self._lay_out(self.app.size.width, self.app.size.height)

    def on_resize(self, event: events.Resize) -> None:
        self._lay_out(event.size.width, event.size.height)

    def _lay_out(self, width: int, height: int) -> None:
        """In two columns if one is too high and there is room; the last line says if more can be scrolled to."""
        lines = len(text_of(self.sections, width).plain.splitlines())
        beside = lines > height - FRAME and width >= BESIDE
        self.set_class(beside, "-beside")
        room = (min(width, WIDEST[beside]) - FRAME - MARGIN) // (1 + beside) - BETWEEN * beside
        first, second = halves(self.sections) if beside else (self.sections, [])
        for name, some in (("#first", first), ("#second", second)):
            column = self.query_one(name, Static)
            column.update(text_of(some, room))
            column.display = bool(some)
        self.call_after_refresh(self._show_more)

    def _show_more(self) -> None:
        keys = self.query_one("#keys")
        keys.border_subtitle = f"{MORE}Esc to close" if keys.max_scroll_y else "Esc to close"

    def action_scroll_keys(self, lines: int) -> None:
        self.query_one("#keys").scroll_relative(y=lines, animate=False)

    def action_page_keys(self, pages: int) -> None:
        keys = self.query_one("#keys")
        keys.scroll_relative(y=pages * max(1, keys.size.height - 1), animate=False)

    def action_end_of_keys(self, direction: int) -> None:
        keys = self.query_one("#keys")
        keys.scroll_to(y=0 if direction < 0 else keys.max_scroll_y, animate=False)


def halves(found: Sequence[Section]) -> tuple[list[Section], list[Section]]:
    """The sections for two columns of about the same height."""
    sizes = [len(section.keys) + 2 for section in found]
    place = min(range(1, len(found) + 1), key=lambda place: abs(2 * sum(sizes[:place]) - sum(sizes)))
    return list(found[:place]), list(found[place:])


def text_of(found: Sequence[Section], room: int = WIDEST[False]) -> Content:
    """One line per action, with the keys in the first column; a description that is longer continues below itself."""
    all_keys = [" ".join(key.keys) for section in found for key in section.keys]
    width = min(WIDEST_KEYS, max(map(len, all_keys), default=0))
    blocks = [
        Content("\n").join([Content.styled(section.title, "bold"), *_lines(section.keys, width, room)])
        for section in found
    ]
    return Content("\n\n").join(blocks)


def _lines(keys: Sequence[Key], width: int, room: int) -> list[Content]:
    found = []
    for key in keys:
        style = "$primary" if key.is_enabled else "$text-muted"
        words = key.description if key.is_enabled else key.description + DISABLED
        first, *more = wrap(words, max(20, room - width - 4)) or [""]
        said = "" if key.is_enabled else "$text-muted"
        found.append(Content.assemble("  ", (fitted(" ".join(key.keys), width), style), "  ", (first, said)))
        found += [Content.styled(" " * (width + 4) + line, said) for line in more]
    return found
