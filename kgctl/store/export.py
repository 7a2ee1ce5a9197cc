"""Export of tables and records to a file: JSON, JSONL, CSV, SQLite, Parquet."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from broker.light_named_tuples import NamedTuple
from kgctl.store.sql import add_table, column_types, flat, open_database

RECORDS = "records"
FORMATS = {
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".sqlite": "sqlite",
    ".db": "sqlite",
    ".parquet": "parquet",
}
# Formats whose files hold one table.
SINGLE = frozenset(("jsonl", "csv", "parquet"))
VERSION = 1
NO_ARROW = "Parquet needs the extra arrow: pip install 'kgctl[arrow]'"


class CannotExport(Exception):
    """The file cannot be written; the message says why."""


class Source(NamedTuple):
    """Rows of one table, which are read while they are written."""

    row: type
    rows: Iterable[Any]


Sources = Mapping[str, Source]


def export(path: Path, format_name: str, sources: Sources) -> dict[str, int]:
    """Write the file, and return how many rows of each table it holds. On an error there is no file."""
    write = _WRITERS[format_name]
    if format_name == "parquet" and importlib.util.find_spec("pyarrow") is None:
        raise CannotExport(NO_ARROW)
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    counts: dict[str, int] = {}
    try:
        write(draft, {name: Source(one.row, _counted(name, one.rows, counts)) for name, one in sources.items()})
        os.replace(draft, path)
    except OSError as error:
        raise CannotExport(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        draft.unlink(missing_ok=True)
    return counts


def _counted(name: str, rows: Iterable[Any], counts: dict[str, int]) -> Iterator[Any]:
    counts[name] = 0
    for row in rows:
        counts[name] += 1
        yield row


def _create(path: Path) -> TextIO:
    return path.open("x", encoding="utf-8", newline="")


def _json(path: Path, sources: Sources) -> None:
    """One document. Rows are written one by one: a topic may be larger than memory."""
    with _create(path) as out:
        out.write(f'{{"version": {VERSION}, "kind": "store-export", "tables": {{')
        for at, (name, source) in enumerate(sources.items()):
            out.write(f"{',' if at else ''}\n{json.dumps(name)}: [")
            for number, row in enumerate(source.rows):
                out.write(f"{',' if number else ''}\n{json.dumps(_object(row))}")
            out.write("]")
        out.write("\n}}\n")


def _jsonl(path: Path, sources: Sources) -> None:
    with _create(path) as out:
        for source in sources.values():
            out.writelines(json.dumps(_object(row), separators=(",", ":")) + "\n" for row in source.rows)


def _object(row: Any) -> dict[str, Any]:
    fields = asdict(row)
    if isinstance(fields.get("headers"), str):
        fields["headers"] = json.loads(fields["headers"])
    return fields


def _csv(path: Path, sources: Sources) -> None:
    with _create(path) as out:
        for source in sources.values():
            columns = list(column_types(source.row))
            writer = csv.writer(out, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows([flat(getattr(row, column)) for column in columns] for row in source.rows)


def _sqlite(path: Path, sources: Sources) -> None:
    import sqlite3

    try:
        database = open_database(str(path))
        try:
            for name, source in sources.items():
                add_table(database, name, source.rows, source.row)
        finally:
            database.close()
    except sqlite3.Error as error:
        raise CannotExport(f"cannot write {path}: {error}") from error


def _parquet(path: Path, sources: Sources) -> None:
    from kgctl.store.parquet import write_parquet

    ((_, source),) = sources.items()
    write_parquet(path, source.row, source.rows)


_WRITERS: dict[str, Callable[[Path, Sources], None]] = {
    "json": _json,
    "jsonl": _jsonl,
    "csv": _csv,
    "sqlite": _sqlite,
    "parquet": _parquet,
}
