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
class Table:
    """`day_of` names the timestamp whose UTC date is the `date=` folder of a row."""

    name: str
    summary: str
    columns: tuple[Column, ...]
    day_of: str

    @property
    def ddl(self) -> str:
        return ", ".join(f"`{column.name}` {column.type}" for column in self.columns)

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)
