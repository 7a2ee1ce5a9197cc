"""The table of open transactions."""

from __future__ import annotations

from kgctl.model.watched_transactions import HANGING, OVERDUE, OpenTransaction
from kgctl.tui import cells
from kgctl.tui.widgets.frame import glyphs
from kgctl.tui.widgets.frame.filter import Field
from kgctl.tui.widgets.frame.looks import Look
from kgctl.tui.widgets.table import catalogue
from kgctl.tui.widgets.table.columns import Column

ONGOING = "Ongoing"
SHORT_STATES = {"PrepareCommit": "committing", "PrepareAbort": "aborting", "PrepareEpochFence": "fencing"}


def columns() -> list[Column[OpenTransaction]]:
    return [
        Column("id", "TRANSACTIONAL ID", name, 24, flex=4, most=60, order=lambda row: row.transactional_id),
        Column("state", "STATE", state, 10, style=lambda row: look(row).style, order=state),
        catalogue.number("age", "AGE", lambda row: row.age_ms, cells_age, 5),
        catalogue.number("timeout", "LIMIT", lambda row: row.timeout_ms, cells_age, 5, priority=4),
        catalogue.number("producer", "PRODUCER", lambda row: row.producer_id, whole, 9, priority=5),
        catalogue.number("partitions", "PARTS", lambda row: row.partition_count, cells.count, 5, priority=2),
        catalogue.number("waiting", "WAITING", lambda row: row.waiting, cells.short, 7),
        Column("groups", "WHO WAITS", lambda row: "", 13, flex=6, most=120, drawn=who,
               order=lambda row: len(waiting(row)), falling=True),
    ]  # fmt: skip


def fields() -> list[Field[OpenTransaction]]:
    return [
        Field("state", lambda row: (state(row), row.state)),
        Field("topic", lambda row: [one.topic for one in row.partitions]),
        Field("group", lambda row: [one.group for one in row.groups]),
        Field("waiting", number=lambda row: row.waiting),
    ]


def name(row: OpenTransaction) -> str:
    """A hanging transaction has no id: the partition says where it is."""
    if row.transactional_id is not None:
        return cells.name(row.transactional_id)
    (partition,) = row.partitions
    return f"({cells.name(partition.topic)}-{partition.partition})"


def state(row: OpenTransaction) -> str:
    return SHORT_STATES.get(row.state, cells.name(row.state))


def look(row: OpenTransaction) -> Look:
    if row.state in (HANGING, OVERDUE):
        return Look(glyphs.FAULT, "bad")
    if row.state != ONGOING:
        return Look(glyphs.MOVING, "warn")
    return Look(glyphs.WARNING, "warn") if waiting(row) else Look(glyphs.GOOD, "good")


def waiting(row: OpenTransaction) -> list[str]:
    """The groups that have read all that they can."""
    return list(dict.fromkeys(one.group for one in row.groups if not one.before))


def who(row: OpenTransaction, width: int) -> str:
    """As many names as fit, and how many more there are."""
    names = [cells.name(group) for group in waiting(row)]
    for count in range(len(names), 0, -1):
        more = f" +{len(names) - count:,}" if count < len(names) else ""
        text = ", ".join(names[:count]) + more
        if len(text) <= width or count == 1:
            return text
    return ""


def cells_age(ms: float | None) -> str:
    return cells.age(None if ms is None else ms / 1000)


def whole(number: int | None) -> str:
    """A number that identifies something has no separators."""
    return cells.count(None) if number is None else str(number)
