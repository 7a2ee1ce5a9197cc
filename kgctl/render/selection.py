"""Which columns of a table are shown, and in which order its rows: --columns, --sort and --no-headers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from typing import Any

from broker.light_dataclasses import dataclass, replace
from broker.light_named_tuples import NamedTuple
from kgctl.render.columns import Column, Layout, Shown

DESCENDING = ("asc", "desc")


class BadColumn(ValueError):
    """No table of the command has this column."""


class SortKey(NamedTuple):
    column: str
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Selection:
    """`columns` are headers or JSON keys, in the order in which they are shown; empty for all columns of the table."""

    columns: tuple[str, ...] = ()
    sort: tuple[SortKey, ...] = ()
    headers: bool = True

    def check(self, layouts: Sequence[Layout]) -> None:
        """Raise BadColumn unless each name is a column of one of these tables."""
        for name in (*self.columns, *(key.column for key in self.sort)):
            if all(column_of(layout, name) is None for layout in layouts):
                known = _once(name for layout in layouts for name in known_columns(layout))
                raise BadColumn(f"{name!r} is not one of {', '.join(known)}.")

    def sorted(self, rows: Sequence[Any], layout: Layout) -> list[Any]:
        """The rows in the order of `sort`; rows without a value come last, in both directions."""
        found = list(rows)
        for key in reversed(self.sort):
            column = self._column(layout, key.column)
            known = [row for row in found if _has_value(column.of(row))]
            known.sort(key=_order_of(column), reverse=key.descending)
            found = known + [row for row in found if not _has_value(column.of(row))]
        return found

    def of(self, layout: Layout) -> Layout:
        """The table as selected. Sorted rows, and rows without headers, are one table even if the layout has several."""
        if self.sort or not self.headers:
            layout = replace(layout, block=None)
        if not self.columns:
            return layout
        chosen = (self._column(layout, name) for name in self.columns)
        return replace(layout, columns=tuple(replace(column, shown=Shown.ALWAYS, rank=None) for column in chosen))

    def keys(self, layout: Layout) -> tuple[str, ...] | None:
        """The JSON keys of the selected columns; None for all of them."""
        return tuple(_key(layout, name) for name in self.columns) if self.columns else None

    def _column(self, layout: Layout, name: str) -> Column:
        self.check([layout])
        found = column_of(layout, name)
        assert found is not None
        return found


ALL = Selection()


def known_columns(layout: Layout) -> list[str]:
    """The headers, and the keys that no header spells."""
    return _once((*(column.header for column in layout.columns), *keys_of(layout)))


def _once(names: Iterable[str]) -> list[str]:
    """Names that differ only in case, `-` and `_` are one: the first spelling."""
    spellings: dict[str, str] = {}
    for name in names:
        spellings.setdefault(_folded(name), name)
    return list(spellings.values())


def keys_of(layout: Layout) -> list[str]:
    return [field.name for field in fields(layout.row)] if layout.row is not None else []


def column_of(layout: Layout, name: str) -> Column | None:
    """The column with this header or JSON key; upper and lower case, `-` and `_` do not matter."""
    wanted = _folded(name)
    for column in layout.columns:
        if wanted == _folded(column.header):
            return column
    for key in keys_of(layout):
        if wanted == _folded(key):
            same = next((column for column in layout.columns if column.value == key), None)
            return same or Column(key.upper().replace("_", "-"), key)
    return None


def _key(layout: Layout, name: str) -> str:
    """The JSON key of a column. Raises BadColumn for one that only tables have, such as two values in one cell."""
    column, keys = column_of(layout, name), keys_of(layout)
    if column is not None and isinstance(column.value, str):
        return column.value
    for key in keys:
        if _folded(key) == _folded(name):
            return key
    raise BadColumn(f"{name!r} is a column of tables only; the keys are {', '.join(keys)}.")


def _folded(name: str) -> str:
    return name.strip().casefold().replace("-", "_").replace(" ", "_")


def _has_value(value: Any) -> bool:
    return value is not None and value != ""


def _order_of(column: Column) -> Callable[[Any], tuple[bool, Any]]:
    """Numbers by size and before texts; texts without regard to case."""

    def order(row: Any) -> tuple[bool, Any]:
        value = column.of(row)
        is_number = isinstance(value, int | float)
        return (not is_number, value if is_number else (str(value).casefold(), str(value)))

    return order


def parse_sort(text: str) -> tuple[SortKey, ...]:
    """The keys of `COLUMN[:desc][,...]`. Raises BadColumn."""
    return tuple(_sort_key(part) for part in parts_of(text))


def _sort_key(text: str) -> SortKey:
    column, colon, direction = text.rpartition(":")
    if not colon:
        return SortKey(text)
    if direction.casefold() not in DESCENDING:
        raise BadColumn(f"{text!r}: the order is asc or desc, not {direction!r}.")
    return SortKey(column, direction.casefold() == "desc")


def parts_of(text: str) -> tuple[str, ...]:
    """The names in a list with commas. Raises BadColumn if there is none, or an empty one."""
    found: Iterable[str] = (part.strip() for part in text.split(","))
    names = tuple(found)
    if not all(names):
        raise BadColumn(f"{text!r} has an empty name.")
    return names
