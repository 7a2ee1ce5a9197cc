"""`kgctl pipeline sql`: one SELECT over the tables of a folder, in DuckDB. Does not import Spark."""

from __future__ import annotations

import atexit
import gc
import importlib.util
import json
import math
import re
from contextlib import ExitStack
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from kgctl.client.net.errors import BadValue, KgctlError, NotFound
from kgctl.pipelines.schemas import TABLES
from kgctl.pipelines.schemas.ddl import Array, Map, Struct, Type, parse
from kgctl.pipelines.schemas.model import Table
from kgctl.pipelines.tables.errors import Newer
from kgctl.pipelines.tables.formats import open_table
from kgctl.pipelines.tables.manifest import TableFolder
from kgctl.pipelines.views.declared import VIEWS
from kgctl.render.query_rows import QueryRows, query_rows

if TYPE_CHECKING:
    import duckdb

_SIMPLE = {
    "string": "VARCHAR",
    "binary": "BLOB",
    "boolean": "BOOLEAN",
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    "timestamp": "TIMESTAMPTZ",
}
# Columns of the tables that are also words of SQL, where they do not begin a clause.
_KEYWORDS = {"group": r"\bgroup\b(?!\s+by\b)", "at": r"\bat\b(?!\s+time\s+zone\b)"}
_QUOTED_OR_COMMENT = re.compile(r"'[^']*'|\"[^\"]*\"|--[^\n]*|/\*.*?\*/", re.DOTALL)

NOT_UTF_8 = "the query fails: the statement is not text in UTF-8"


class SqlMissing(KgctlError):
    """The extra `sql` is not installed."""


def run_query(out: Path, sql: str) -> QueryRows:
    """The rows of one SELECT; times are texts in ISO 8601.

    The statement can read files below `out`, and can change nothing. Raises SqlMissing, NotFound, BadValue if the
    statement is wrong, Damaged, Newer.
    """
    if any(importlib.util.find_spec(name) is None for name in ("duckdb", "pyarrow")):
        raise SqlMissing("SQL needs DuckDB: pip install 'kgctl[sql]'")
    import duckdb

    # kgctl freezes all objects when it ends; DuckDB's module would report them as leaks on stderr.
    atexit.register(gc.unfreeze)
    folders = {name: open_table(out / name) for name in TABLES}
    if not any(folder.state().committed for folder in folders.values()):
        raise NotFound(f"{out} holds no tables; `kgctl pipeline run --out {out}` writes them")
    with ExitStack() as files_stay, duckdb.connect() as connection:
        for folder in folders.values():
            files_stay.enter_context(folder.reading())
        _prepare(connection, out, folders)
        try:
            return _rows(connection, sql)
        except duckdb.ParserException as error:
            reason = _first_sentence(error)
            raise BadValue(f"the query fails: {reason}{_unquoted(sql, reason)}") from None
        except duckdb.Error as error:
            raise BadValue(f"the query fails: {_first_sentence(error)}") from None


def _prepare(connection: duckdb.DuckDBPyConnection, out: Path, folders: dict[str, TableFolder]) -> None:
    connection.execute("set timezone = 'UTC'")
    connection.execute("set temp_directory = ''")
    # Otherwise a statement could read the variables of this program.
    connection.execute("set python_enable_replacements = false")
    for name, folder in folders.items():
        connection.execute(f"create view {_quoted(name)} as {_select(folder, TABLES[name])}")
    for view in VIEWS:
        connection.execute(f"create view {_quoted(view.name)} as {view.sql}")
    connection.execute(f"set allowed_directories = [{_text(str(out.resolve()))}]")
    connection.execute("set enable_external_access = false")
    connection.execute("set lock_configuration = true")


def _select(folder: TableFolder, table: Table) -> str:
    """The rows of all files with the columns of today: null where a file lacks one."""
    paths: dict[int, list[str]] = {}
    for path, file in folder.located():
        if file.schema > table.version:
            raise Newer(f"{folder.folder}: a newer kgctl wrote this table; update kgctl")
        paths.setdefault(file.schema, []).append(str(path.resolve()))
    parts = [_select_version(table, version, paths.get(version, [])) for version in sorted(paths) or [table.version]]
    return " union all ".join(parts)


def _select_version(table: Table, version: int, paths: list[str]) -> str:
    stored = table.stored_as(version)
    rows = ", ".join(f"null::{duckdb_type(parse(one.type))} as {_quoted(one.name)}" for one in stored)
    rows = f"select {rows} where false"
    if paths:
        files = f"[{', '.join(map(_text, paths))}]"
        rows += (
            f" union all by name select * from read_parquet({files}, union_by_name = true, hive_partitioning = false)"
        )
    columns = ", ".join(
        f"{_quoted(one.name)}::{duckdb_type(parse(one.column.type))} as {_quoted(one.column.name)}" for one in stored
    )
    return f"select {columns} from ({rows})"


def duckdb_type(kind: Type) -> str:
    match kind:
        case Array(element):
            return f"{duckdb_type(element)}[]"
        case Map(key, value):
            return f"MAP({duckdb_type(key)}, {duckdb_type(value)})"
        case Struct(fields):
            return f"STRUCT({', '.join(f'{_quoted(name)} {duckdb_type(each)}' for name, each in fields)})"
        case _:
            return _SIMPLE[kind]


def _rows(connection: duckdb.DuckDBPyConnection, sql: str) -> QueryRows:
    import duckdb

    try:
        sql.encode()
    except UnicodeEncodeError:
        raise BadValue(NOT_UTF_8) from None
    statements = connection.extract_statements(sql)
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise BadValue("the query fails: only one SELECT is allowed")
    found = connection.sql(sql).to_arrow_table()
    names = found.column_names
    columns = [
        [_shown(value) for value in _values(name, column)] for name, column in zip(names, found.columns, strict=True)
    ]
    return query_rows(names, zip(*columns, strict=True))


def _values(name: str, column: Any) -> list[Any]:
    """The values of an Arrow column; times that Python's calendar lacks as texts. Raises BadValue if these are in a list."""
    try:
        return list(column.to_pylist())
    except OverflowError:
        pass
    try:
        return list(column.cast("string").to_pylist())
    except NotImplementedError:  # of Arrow
        raise BadValue(
            f"the query fails: column {name} has times outside the years 1 to 9999: cast it to varchar"
        ) from None


def _shown(value: Any) -> Any:
    """As JSON can hold it."""
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case None | bool() | int() | float() | str():
            return value
        case datetime():
            return (value if value.tzinfo is None else value.astimezone(UTC)).isoformat(timespec="milliseconds")
        case bytes():
            return f"x'{value.hex()}'"
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case list() | tuple() | dict():
            return json.dumps(_plain(value), ensure_ascii=False)
        case date() | time() | timedelta() | UUID():
            return str(value)
        case _:
            return str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    return _shown(value)


def _first_sentence(error: Exception) -> str:
    """DuckDB's text without the excerpt of the statement below it."""
    lines = re.split(r"\n\s*\n|\nLINE \d+:", str(error).strip())[0].splitlines()
    return " ".join(line.strip() for line in lines).rstrip(".!")


def _unquoted(sql: str, reason: str) -> str:
    """Advice if the parser stopped at such a column without quotes, or just after it; else nothing."""
    near = re.search(r'at or near "(.*)"$', reason, re.DOTALL)
    if near is None:
        return ""
    bare = _QUOTED_OR_COMMENT.sub(" '' ", sql)
    for word, pattern in _KEYWORDS.items():
        is_before = re.search(rf"{pattern}\s*{re.escape(near[1])}", bare, re.IGNORECASE)
        if near[1].lower() == word or is_before:
            return f"; the column is {_quoted(word)}, in double quotes"
    return ""


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
