"""`kgctl store query`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from kgctl.client.net.errors import BadValue
from kgctl.commands.shared.effects import queries_files
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.settings import settings
from kgctl.commands.store.opening import Directory, opened

EPILOG = examples(
    "kgctl store query ./data",
    'kgctl store query ./data "SELECT topic, sum(lag) FROM offsets GROUP BY 1"',
    'kgctl store query ./data "SELECT * FROM users" -o csv',
    "kgctl store query ./data - < report.sql",
)


@queries_files
def query(
    ctx: typer.Context,
    directory: Directory,
    sql: Annotated[
        str | None,
        typer.Argument(metavar="[SQL]", help="One SELECT; - reads it from stdin.", show_default=False),
    ] = None,
) -> None:
    """Run SQL over tables of a data directory.

    Without SQL, list the tables with their columns; docs/store.md describes them. Only SELECT is allowed (SQLite's
    dialect). Lists are JSON texts, times are UTC in ISO 8601. An error in the SQL is one line and exit code 2.
    """
    from kgctl.store.tables import TABLES

    chosen = settings(ctx)
    with opened(ctx, directory) as offline:
        if sql is None:
            from kgctl.model.store import StoreTable

            tables = [StoreTable(name, table.meaning, table.columns) for name, table in TABLES.items()]
            chosen.show(tables, kind="store-tables")
            return
        from kgctl.store.sql import BadQuery, run_query

        try:
            found = run_query(offline, sys.stdin.read() if sql == "-" else sql)
        except BadQuery as error:
            raise BadValue(f"the query fails: {error}") from None
    chosen.show(found.rows, kind="store-query", row=found.row)
