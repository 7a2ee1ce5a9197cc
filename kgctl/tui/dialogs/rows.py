"""What the tables of dialogs have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kgctl.model.changes import DONE
from kgctl.render.table import printable
from kgctl.tui import cells
from kgctl.tui.dialogs.outcomes import GroupChanged
from kgctl.tui.widgets.table.columns import Column

G = TypeVar("G", bound=GroupChanged)


def group_column(is_bulk: bool) -> list[Column[G]]:
    """The group of each row, where there are several."""
    return [Column("group", "GROUP", lambda row: cells.name(row.group), 12, flex=2, most=40)] if is_bulk else []


def status_column(
    status: Callable[[G], str], style: Callable[[G], str], width: int = 14, title: str = "STATUS"
) -> Column[G]:
    """What happens or has happened to the row; an error takes the rest of the line."""
    return Column("status", title, lambda row: failed(row) or status(row), width, flex=8, style=style)


def failed(row: GroupChanged) -> str:
    return printable(f"failed: {row.error.message}") if row.error else ""


def style(status: str, error: object) -> str:
    return "bad" if error else "good" if status == DONE else "dim"
