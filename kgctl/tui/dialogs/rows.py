"""What the tables of dialogs have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kgctl.model.changes import DONE, GroupChange, OffsetChange
from kgctl.render.table import printable
from kgctl.tui import cells
from kgctl.tui.dialogs.outcomes import GroupChanged, may_have_changed
from kgctl.tui.widgets.table.columns import Column

G = TypeVar("G", bound=GroupChanged)


def group_column(is_bulk: bool) -> list[Column[G]]:
    """The group of each row, where there are several."""
    return [Column("group", "GROUP", lambda row: cells.name(row.group), 12, flex=2, most=40)] if is_bulk else []


def status_column(
    status: Callable[[G], str],
    style: Callable[[G], str],
    width: int = 14,
    title: str = "STATUS",
    failed: Callable[[G], str] | None = None,
) -> Column[G]:
    """What happens or has happened to the row; an error takes the rest of the line, in the words of `failed`."""
    say = failed or failure
    return Column("status", title, lambda row: say(row) or status(row), width, flex=8, style=style)


def failure(row: GroupChanged) -> str:
    return printable(f"failed: {row.error.message}") if row.error else ""


def not_deleted(row: GroupChange | OffsetChange, *, brief: bool = False) -> str:
    """Of a plan or an outcome; `brief`: the reason is elsewhere."""
    if row.error is None:
        return ""
    if may_have_changed(row.error.name):
        return failure(row)
    return "not deleted" if brief else printable(f"not deleted: {reason(row)}")


def reason(row: GroupChange | OffsetChange) -> str:
    """The message without the name of the row."""
    message = row.error.message if row.error else ""
    names = [f"group '{row.group}': "]
    if isinstance(row, OffsetChange):
        names.append(f"group '{row.group}', {row.topic}-{row.partition}: ")
    return next((message.removeprefix(name) for name in names if message.startswith(name)), message)


def style(status: str, error: object) -> str:
    return "bad" if error else "good" if status == DONE else "dim"
