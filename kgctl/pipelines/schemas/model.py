"""What a table is: its name, its columns and what they mean. Does not import Spark."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """`type` is in Spark's DDL."""

    name: str
    type: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Stored:
    """A column, and the name and type that it has in a file."""

    column: Column
    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Change:
    """How files before a version of the table hold a column: under the name `was`, with the type `type_was`.

    Left empty, name or type are what they are in that version. New columns need no Change: older files give null.
    """

    version: int
    column: str
    was: str = ""
    type_was: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """`day_of` names the timestamp whose UTC date is the `date=` folder of a row.

    `version` grows with each change of the columns; `changes` lists those that rename or retype one. An older kgctl
    refuses files of a newer version.

    A table with `verdicts` judges groups with these words, worst first. With a column `status`, each evaluation covers all
    groups at one time, the column `at`. With a column `event`, the last row of a group and metric says whether it is the
    first word (`started`) or the last (`ended`).
    """

    name: str
    summary: str
    columns: tuple[Column, ...]
    day_of: str
    version: int = 1
    changes: tuple[Change, ...] = ()
    verdicts: tuple[str, ...] = ()

    @property
    def ddl(self) -> str:
        return ", ".join(f"`{column.name}` {column.type}" for column in self.columns)

    def stored_as(self, version: int) -> tuple[Stored, ...]:
        """Each column, as files of that version hold it."""
        return tuple(self._stored(column, version) for column in self.columns)

    def _stored(self, column: Column, version: int) -> Stored:
        name, kind = column.name, column.type
        for change in sorted(self.changes, key=lambda change: change.version, reverse=True):
            if change.version > version and change.column == name:
                name, kind = change.was or name, change.type_was or kind
        return Stored(column, name, kind)

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)
