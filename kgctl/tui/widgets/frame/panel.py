"""A panel: a thin rounded frame around a part of a screen, with a title, counts, and a note at the right."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content, Span
from textual.style import Style
from textual.widget import Widget

from kgctl.tui.widgets.frame import glyphs

# The corners, a line and a blank on each side of the title.
AROUND = 6
SEPARATOR = f" {glyphs.SEPARATOR} "


class Panel(Vertical):
    """`number` is the key that zooms it; `least` its smallest useful size, frame included.

    The panel with the focus has a frame in the accent colour and a mark beside its number.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {"panel--title", "panel--rest"}
    DEFAULT_CSS = """
    Panel {
        height: 1fr;
        padding: 0 1;
        border: round $frame;
        background: $surface;
        color: $foreground;
        border-title-background: $surface;
        & > .panel--title { color: $foreground; text-style: bold; }
        & > .panel--rest { color: $text-muted; }
        &:focus-within { border: round $primary; }
        &:focus-within > .panel--title { color: $primary; text-style: bold; }
    }
    """
    LEAST: ClassVar[tuple[int, int]] = (20, 3)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave_zoom", "Show all panels", show=False),
    ]

    def __init__(
        self,
        title: str,
        *children: Widget,
        number: int | None = None,
        least: tuple[int, int] | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(*children, id=id, classes=classes)
        self.number = number
        self.least = least or self.LEAST
        self.is_zoomed = False
        self._parts: tuple[str | Content, ...] = (title,)
        self._note: str | Content = ""

    def show_title(self, *parts: str | Content, note: str | Content = "") -> None:
        """Replace the title. Parts after the first, and the note, are left out as a whole where they do not fit."""
        if (parts, note) != (self._parts, self._note) or not self.border_title:
            self._parts, self._note = parts, note
            self._put_title()

    @property
    def title_text(self) -> str:
        """The title as it is shown."""
        return self._title(max(0, self.outer_size.width - AROUND)).plain

    def on_resize(self, event: events.Resize) -> None:
        self._put_title()

    def on_show(self) -> None:
        self._put_title()

    def on_descendant_focus(self) -> None:
        self._put_title()

    def on_descendant_blur(self) -> None:
        self._put_title()

    def first_focusable(self) -> Widget | None:
        """The widget that gets the focus when the panel does."""
        return next((one for one in self.query("*") if one.focusable and one.display), None)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "leave_zoom":
            return self.is_zoomed
        return super().check_action(action, parameters)

    async def action_leave_zoom(self) -> None:
        await self.app.run_action(f"screen.zoom({self.number})")

    def _put_title(self) -> None:
        self.border_title = self._title(max(0, self.outer_size.width - AROUND))

    def _title(self, width: int) -> Content:
        title = self.get_visual_style("panel--title")
        rest = self.get_visual_style("panel--rest")
        text = Content()
        if self.number is not None:
            mark = glyphs.FOCUS if self.has_focus_within else " "
            text = Content.styled(glyphs.NUMBERS[self.number] + mark, title)
        for place, part in enumerate(self._parts):
            shown = (
                self._resolved(part) if isinstance(part, Content) else Content.styled(part, rest if place else title)
            )
            longer = text + Content.styled(SEPARATOR, rest) + shown if place else text + shown
            if place and longer.cell_length > width:
                break
            text = longer
        text = text.truncate(width, ellipsis=True)
        note = self._resolved(self._note) if isinstance(self._note, Content) else Content.styled(self._note, rest)
        room = width - text.cell_length - note.cell_length - 2
        if note and room > 0:
            frame = self.styles.border_top[1]
            text = text + " " + Content.styled(glyphs.DASH * room, f"{frame.css}") + " " + note
        return text

    def _resolved(self, text: Content) -> Content:
        """A border resolves no theme variables, so do it here."""
        variables = self.app.theme_variables
        spans = [
            Span(start, end, Style.parse(style, variables) if isinstance(style, str) else style)
            for start, end, style in text.spans
        ]
        return Content(text.plain, spans)
