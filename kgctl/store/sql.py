"""SQL over the tables of a data directory: a database in memory, filled with the tables that a statement names."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, get_type_hints

from kgctl.render.query_rows import QueryRows, query_rows
from kgctl.store.offline import Offline
from kgctl.store.tables import TABLES

if TYPE_CHECKING:
    from sqlite_utils import Database

_ALLOWED = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    getattr(sqlite3, "SQLITE_RECURSIVE", 33),
}
# Instructions of SQLite's virtual machine between two checks for Ctrl-C.
STEPS_PER_CHECK = 100_000


class BadQuery(Exception):
    """The statement is wrong, or changes something."""


def run_query(offline: Offline, sql: str) -> QueryRows:
    """The rows of one SELECT."""
    database = open_database(None)
    try:
        words = set(re.findall(r"\w+", sql.lower()))
        for name in TABLES:
            add_table(database, name, TABLES[name].rows(offline) if name in words else ())
        connection = database.conn
        connection.execute("PRAGMA query_only=1")
        connection.set_authorizer(lambda action, *_: sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY)
        connection.set_progress_handler(lambda: 0, STEPS_PER_CHECK)
        return _selected(connection, sql)
    finally:
        database.conn.set_authorizer(None)
        database.close()


def open_database(path: str | None) -> Database:
    """A database in a new file, or in memory."""
    # sqlite-utils imports pandas where it is installed, which takes a second, and we need nothing of it.
    is_hidden = "pandas" not in sys.modules
    if is_hidden:
        sys.modules["pandas"] = None  # type: ignore[assignment]
    try:
        from sqlite_utils import Database
    finally:
        if is_hidden:
            del sys.modules["pandas"]
    return Database(path) if path else Database(memory=True)


def _selected(connection: sqlite3.Connection, sql: str) -> QueryRows:
    try:
        cursor = connection.execute(sql)
        found = cursor.fetchall()
    except (sqlite3.Error, sqlite3.Warning, UnicodeEncodeError) as error:
        text = str(error).rstrip(".")
        if text == "interrupted":
            raise KeyboardInterrupt from None
        if text in ("not authorized", "attempt to write a readonly database") or "prohibited" in text:
            raise BadQuery("the query is read-only: only SELECT is allowed, without PRAGMA and ATTACH") from None
        raise BadQuery(text) from None
    if cursor.description is None:
        raise BadQuery("no SELECT: the statement returns no rows")
    return query_rows([column[0] for column in cursor.description], ([*map(_shown, values)] for values in found))


def _shown(value: Any) -> Any:
    return f"x'{value.hex()}'" if isinstance(value, bytes) else value


def add_table(database: Database, name: str, rows: Iterable[Any], row: type | None = None) -> None:
    """Create a table with typed columns, and fill it. Lists become JSON."""
    row = row or TABLES[name].row
    table = database[name]
    table.create(column_types(row))  # type: ignore[union-attr]
    columns = list(column_types(row))
    marks = ", ".join("?" * len(columns))
    with database.conn:
        database.conn.executemany(f"INSERT INTO [{name}] VALUES ({marks})", _values(rows, columns))


def _values(rows: Iterable[Any], columns: list[str]) -> Iterator[tuple[Any, ...]]:
    for row in rows:
        yield tuple(flat(getattr(row, column)) for column in columns)


def flat(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, tuple) else value


def column_types(row: type) -> dict[str, type]:
    """int for numbers and flags, str for text and lists."""
    hints = get_type_hints(row)
    return {name: int if hint in (int, int | None, bool) else str for name, hint in hints.items()}
