"""The last line of every screen: the keys that work now, as many as fit."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.app import App
from textual.content import Content
from textual.dom import DOMNode
from textual.screen import Screen

from kgctl.tui.keys import Key, sections
from kgctl.tui.widgets.text.line import Line, as_fits

BETWEEN = "  "


class KeyLine(Line):
    """`hints` come first: keys and what they do, for what bindings do not say in one line. A click on a key presses it.

    The keys of the app stand at the right end, where they are on every screen.
    """

    DEFAULT_CSS = """
    KeyLine { height: 1; background: $panel; color: $foreground; }
    """

    def __init__(self, hints: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__()
        self._hints = tuple(hints)
        self._keys: list[Key] = []
        self._prompt = ""

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._on_bindings)
        self._on_bindings(self.screen)

    def _on_bindings(self, screen: Screen[object]) -> None:
        if self.is_attached and screen.app.screen is screen:
            self._keys = [key for section in sections(screen) for key in section.keys if key.is_shown]
            self.refresh()

    def prompt(self, text: str) -> None:
        """Show this instead of the keys; an empty text shows the keys again."""
        self._prompt = text
        self.refresh()

    def text(self, width: int) -> Content:
        if self._prompt:
            return Content.styled(self._prompt, "bold $primary").truncate(width, ellipsis=True)
        here = [*(_hint(*one) for one in self._hints), *map(_shown, self._of(App, is_in=False))]
        end = Content(BETWEEN).join(map(_shown, self._of(App, is_in=True)))
        left = as_fits(Content(), here, "", BETWEEN, max(0, width - end.cell_length - len(BETWEEN)))
        return left + " " * (width - left.cell_length - end.cell_length) + end

    def _of(self, kind: type[DOMNode], *, is_in: bool) -> list[Key]:
        return [key for key in self._keys if isinstance(key.node, kind) is is_in]

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        if offset is None:
            return
        text = self.text(max(1, self.content_size.width)).plain
        for key in self._keys:
            shown = _shown(key).plain
            left = text.find(shown)
            if 0 <= left <= offset.x < left + len(shown) and key.is_enabled:
                self.run_worker(self.app.run_action(key.action, key.node))
                return


def _shown(key: Key) -> Content:
    return Content.assemble(
        (key.keys[0], "bold $primary" if key.is_enabled else "$text-muted"),
        (f" {key.label}", "" if key.is_enabled else "$text-muted"),
    )


def _hint(keys: str, does: str) -> Content:
    return Content.assemble((keys, "bold $primary"), f" {does}")
