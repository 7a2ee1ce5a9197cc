"""The columns of a table, and their widths at a given terminal width."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Generic, TypeVar

from rich.cells import cell_len

from broker.light_dataclasses import dataclass

R = TypeVar("R")
GAP = 2


@dataclass(frozen=True)
class Column(Generic[R]):
    """`width` is the exact width without `flex`; columns that flex share the remaining cells, up to `most`.

    Where cells of a column that flexes do not fit, columns that flex and have cells left give some, even below their `width`.

    Columns with `priority` 0 are always shown; where room is short, the highest priority goes first.
    `is_spelt_out`: of several forms it needs the longest one that `most` has room for, where others need the shortest.
    `from_room`: the table must have this many cells. `style` returns one of
    Rows.STYLES or "". `order` returns the sort key; None sorts last, and a column without `order` cannot be sorted by.
    `falling`: sorting by this column starts with the largest value. `drawn` replaces `text` where the width matters.
    `is_wanted`: the column is left out while it returns False.
    """

    key: str
    title: str
    text: Callable[[R], str]
    width: int
    flex: int = 0
    most: int = 200
    right: bool = False
    style: Callable[[R], str] = lambda _: ""
    order: Callable[[R], Any] | None = None
    falling: bool = False
    priority: int = 0
    from_room: int = 0
    is_spelt_out: bool = False
    drawn: Callable[[R, int], str] | None = None
    is_wanted: Callable[[], bool] | None = None

    def cell(self, row: R, width: int) -> str:
        """The text for a cell of this width."""
        return self.text(row) if self.drawn is None else self.drawn(row, width)


def laid_out(
    columns: Sequence[Column[R]], room: int, needs: Mapping[str, int] | None = None
) -> list[tuple[Column[R], int]]:
    """The columns that fit into `room` cells, each with its width.

    Without `needs`, the cells that the texts of each column take, the result depends on no value that a refresh changes.
    Needs change no more than is necessary to show whole texts.
    """
    shown = [column for column in columns if column.from_room <= max(room, 0)]
    while _least(shown) > room and any(column.priority for column in shown):
        highest = max(column.priority for column in shown)
        shown.remove(next(column for column in reversed(shown) if column.priority == highest))
    widths = {column.key: column.width for column in shown}
    left = room - _least(shown)
    growing = [column for column in shown if column.flex]
    while left > 0 and growing:
        shares = sum(column.flex for column in growing)
        share, left_before = left, left
        for column in growing:
            more = min(max(1, share * column.flex // shares), column.most - widths[column.key], left)
            widths[column.key] += more
            left -= more
        growing = [column for column in growing if widths[column.key] < column.most]
        if left == left_before:
            break
    if left < 0:
        # No more columns may be hidden, so the widest one shrinks.
        widest = max(shown, key=lambda column: widths[column.key])
        widths[widest.key] = max(1, widths[widest.key] + left)
    if needs:
        _move_cells([column for column in shown if column.flex], widths, needs, max(0, left))
    return [(column, widths[column.key]) for column in shown]


def _move_cells(columns: Sequence[Column[R]], widths: dict[str, int], needs: Mapping[str, int], unused: int) -> None:
    """Give cells that are unused, or left in the column with the most of them, to the columns that lack the fewest."""
    lacking = {column.key: min(needs[column.key], column.most) - widths[column.key] for column in columns}
    spare = {column.key: widths[column.key] - max(needs[column.key], cell_len(column.title)) for column in columns}
    for key in sorted((key for key, cells in lacking.items() if cells > 0), key=lacking.__getitem__):
        for _ in range(lacking[key]):
            if unused > 0:
                unused -= 1
            else:
                giver = max(spare, key=spare.__getitem__)
                if spare[giver] <= 0:
                    return
                spare[giver] -= 1
                widths[giver] -= 1
            widths[key] += 1


def _least(columns: Sequence[Column[R]]) -> int:
    return sum(column.width for column in columns) + GAP * max(0, len(columns) - 1)


def in_order(rows: Sequence[R], column: Column[R] | None, descending: bool) -> list[R]:
    """Rows sorted by the column. Rows without a value come last in both directions; equal rows keep their order."""
    if column is None or column.order is None:
        return list(rows)
    values = [(column.order(row), row) for row in rows]
    known = [pair for pair in values if pair[0] is not None]
    known.sort(key=itemgetter(0), reverse=descending)
    found = [row for _, row in known]
    return found if len(found) == len(values) else found + [row for value, row in values if value is None]
