"""What a table column declares: header, value, when it is shown, how it fits a narrow terminal, and its tones."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from enum import Enum
from functools import partial
from typing import Any

from broker.light_dataclasses import dataclass, replace


class Shown(Enum):
    ALWAYS = "always"
    VERBOSE = "in verbose tables"
    IF_ANY = "if a row has a value"
    VERBOSE_IF_ANY = "in verbose tables if a row has a value"
    WIDE = "in wide tables"
    WIDE_IF_ANY = "in wide tables if a row has a value"


class Fit(Enum):
    """What happens to the text of a cell when the terminal is too narrow for the table."""

    WHOLE = "shown whole: numbers, states, times"
    SHORTEN = "cut in the middle: names and lists"
    WRAP = "continued on the next line: sentences and causes"


class Tone(Enum):
    """What a value means to the reader; the terminal gives each tone its colour."""

    GOOD = "good"
    CHANGING = "changing"
    BAD = "bad"
    QUIET = "quiet"


# A column with a higher rank is left out only after all names have been shortened.
RELUCTANTLY = 100


@dataclass(frozen=True, slots=True)
class Column:
    """`value` names a field of the row, or computes the value from the row; `width` is the least one outside a terminal.

    On a terminal that is too narrow: `brief` replaces `value`; columns with a `rank` are left out, the lowest rank first;
    `share` is how much of the spare width the column gets relative to the others. `tones` gives all values one tone, or a
    tone to each value.
    """

    header: str
    value: str | Callable[[Any], Any]
    width: int = 0
    shown: Shown = Shown.ALWAYS
    fit: Fit = Fit.WHOLE
    rank: int | None = None
    share: int = 1
    brief: Callable[[Any], Any] | None = None
    tones: Tone | Mapping[str, Tone] | None = None

    def of(self, row: Any, *, brief: bool = False) -> Any:
        if brief and self.brief is not None:
            return self.brief(row)
        return getattr(row, self.value) if isinstance(self.value, str) else self.value(row)

    def is_shown(self, rows: Iterable[Any], verbose: bool) -> bool:
        if self.shown is Shown.ALWAYS:
            return True
        if self.shown in (Shown.WIDE, Shown.WIDE_IF_ANY) or (self.shown is not Shown.IF_ANY and not verbose):
            return False
        return self.shown is Shown.VERBOSE or any(self.of(row) is not None for row in rows)

    def tone_of(self, text: str) -> Tone | None:
        return self.tones.get(text) if isinstance(self.tones, Mapping) else self.tones


IDENTIFYING = frozenset(
    {
        "group",
        "topic",
        "partition",
        "consumer_id",
        "transactional_id",
        "user",
        "config",
        "resource",
        "principal",
        "broker",
    }
)


@dataclass(frozen=True, slots=True)
class Layout:
    """The type of a row, which gives JSON and CSV their keys, and the columns of its table.

    `block` names the field whose change starts a new table, with its own header and widths. `slack` is added to the width
    of the first column, as Kafka's tool does for listings. `name` is the field that `-o name` prints, by default
    the first one that identifies a row.
    """

    row: type | None
    columns: tuple[Column, ...]
    block: str | None = None
    slack: int = 0
    name: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The fields that say what a row is about; errors have them, too."""
        return tuple(field.name for field in fields(self.row) if field.name in IDENTIFYING) if self.row else ()

    @property
    def name_field(self) -> str:
        assert self.row is not None
        return self.name or (*self.names, fields(self.row)[0].name)[0]

    def widened(self) -> Layout:
        """The same table with its wide columns."""
        return replace(self, columns=tuple(replace(c, shown=_WIDENED.get(c.shown, c.shown)) for c in self.columns))


_WIDENED = {Shown.WIDE: Shown.ALWAYS, Shown.WIDE_IF_ANY: Shown.IF_ANY}


def layout_by_fields(row: type) -> Layout:
    """A column for each field of the row."""
    names = (field.name for field in fields(row))
    return Layout(row, tuple(Column(name.upper().replace("_", "-"), name) for name in names))


def layout_by_values(rows: Sequence[Any]) -> Layout:
    """The same for rows of any shape: texts may be shortened, times to seconds; if that is not enough, the last columns are left out."""
    plain = layout_by_fields(type(rows[0]))
    columns = []
    for number, column in enumerate(plain.columns):
        values = [value for row in rows if (value := column.of(row)) is not None]
        is_time = bool(values) and all(isinstance(one, str) and _TIME.fullmatch(one) for one in values)
        is_text = not is_time and any(isinstance(one, str) for one in values)
        columns.append(
            replace(
                column,
                fit=Fit.SHORTEN if is_text else Fit.WHOLE,
                brief=partial(_in_seconds, column) if is_time else None,
                rank=RELUCTANTLY + len(plain.columns) - number if number else None,
            )
        )
    return replace(plain, columns=tuple(columns))


# A time in ISO 8601, with milliseconds and perhaps the offset of UTC.
_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.\d{3}(\+00:00|Z)?")


def _in_seconds(column: Column, row: Any) -> str | None:
    text = column.of(row)
    return None if text is None else _TIME.sub(lambda found: found[1] + ("Z" if found[2] else ""), text)
