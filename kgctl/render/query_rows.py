"""The rows of an SQL statement, whose columns are known only when it has run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, make_dataclass
from typing import Any

from kgctl.render.column_keys import column_keys


@dataclass(frozen=True, slots=True)
class QueryRows:
    """Dataclasses of the type `row`, which has a field for each column."""

    row: type
    rows: list[Any]


def query_rows(columns: Sequence[str], values: Iterable[Sequence[Any]]) -> QueryRows:
    """`columns` as the statement names them; `values` of each row in the same order."""
    row = make_dataclass("QueryRow", [(name, Any) for name in column_keys(columns)], frozen=True, slots=True)
    return QueryRows(row, [row(*some) for some in values])
