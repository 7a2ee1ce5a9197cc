"""The menu that copies the name of a row, the row, or the command that shows the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.widgets import Static

from broker.light_dataclasses import dataclass
from kgctl.render.table import printable
from kgctl.tui.command_line import line
from kgctl.tui.widgets.frame.panel import Panel
from kgctl.tui.widgets.table.columns import Column
from kgctl.tui.widgets.table.rows import Rows

# Terminals ignore longer texts.
LONGEST = 50_000
# A column of a picture has no text to copy.
PICTURES = frozenset({"trend"})
FALLBACK = "Copied with OSC 52. If your terminal lacks it, hold shift and select the text above."


@dataclass(frozen=True)
class Copy:
    """`key` chooses it. `text` is printable."""

    key: str
    what: str
    text: str


def copies(rows: Rows[Any], name: str, command: str) -> Sequence[Copy]:
    """What can be copied of the row under the cursor."""
    row = rows.cursor_row
    if row is None:
        return ()
    cells = [column.cell(row, column.most) for column in rows.columns if column.key not in PICTURES]
    # A name that a shell or an editor would act upon is quoted.
    found = [Copy("n", "name", name if name.isprintable() else line([name]))] if name else []
    found.append(Copy("r", "row", printable("\t".join(cells)).replace("\\t", "\t")))
    if command:
        found.append(Copy("c", "command", command))
    return [one for one in found if len(one.text) <= LONGEST]


class CopyRows(Rows[Copy]):
    HELP_TITLE: ClassVar[str] = "In the menu"


class CopyMenu(ModalScreen[Copy]):
    """The result is what the user has chosen."""

    DEFAULT_CSS = """
    CopyMenu {
        align: center middle;
        & > Panel { width: 90; max-width: 100%; height: auto; max-height: 100%; }
        & Rows { height: 3; }
        & Static { height: auto; max-height: 12; }
        & #text { margin: 1 1 0 1; }
        & #fallback { margin: 1 1 0 1; color: $text-muted; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss", "Close"),
        Binding("n", "take('n')", "Copy the name"),
        Binding("r", "take('r')", "Copy the row, its cells separated by tabs"),
        Binding("c", "take('c')", "Copy the command"),
        Binding("y", "first", "Copy the chosen one"),
    ]

    def __init__(self, found: Sequence[Copy]) -> None:
        super().__init__()
        self._found = found
        self.rows = CopyRows(
            [
                Column("key", "", lambda row: row.key, 1, style=lambda _: "strong"),
                Column("what", "", lambda row: row.what, 8),
                Column("text", "", lambda row: row.text.replace("\t", "  "), 20, flex=1, style=lambda _: "dim"),
            ],
            key=lambda row: row.key,
            has_header=False,
        )
        self._text = Static("", id="text", markup=False)

    def compose(self) -> ComposeResult:
        yield Panel("Copy", self.rows, self._text, Static(FALLBACK, id="fallback", markup=False))

    def on_mount(self) -> None:
        self.query_one(Panel).show_title("Copy", note="Enter Esc")
        self.rows.show(self._found)
        self.set_focus(self.rows)

    def on_rows_moved(self, event: Rows.Moved) -> None:
        event.stop()
        self._text.update("" if event.row is None else event.row.text)

    def on_rows_chosen(self, event: Rows.Chosen) -> None:
        event.stop()
        self.dismiss(event.row)

    def action_take(self, key: str) -> None:
        chosen = next((one for one in self._found if one.key == key), None)
        if chosen is not None:
            self.dismiss(chosen)

    def action_first(self) -> None:
        if self.rows.cursor_row is not None:
            self.dismiss(self.rows.cursor_row)
