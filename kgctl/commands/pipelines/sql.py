"""`kgctl pipeline sql`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from kgctl.client.net.errors import BadValue
from kgctl.commands.shared.effects import queries_files
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.settings import settings
from kgctl.model.pipelines import QueryableRow
from kgctl.pipelines.schemas import TABLES
from kgctl.pipelines.views.declared import VIEWS

EPILOG = examples(
    "kgctl pipeline sql --out facts",
    'kgctl pipeline sql "select * from worst_groups" --out facts',
    'kgctl pipeline sql "select topic, lag from lag_now" --out facts -o csv',
    "kgctl pipeline sql - --out facts < report.sql",
)


@queries_files
def sql(
    ctx: typer.Context,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder with the tables of a run.")],
    statement: Annotated[
        str | None,
        typer.Argument(metavar="[SQL]", help="One SELECT; - reads it from stdin.", show_default=False),
    ] = None,
) -> None:
    """Run SQL over the tables in a folder. Needs the extra kgctl[sql].

    Without SQL, list the tables and views. The dialect is DuckDB's; put double quotes around "group" and "at". A statement
    can read only files in DIR and cannot change anything. Times are in UTC, in ISO 8601; lists are JSON text. An error in the
    SQL prints one line and exits with code 2.
    """
    chosen = settings(ctx)
    if statement is None:
        tables = [QueryableRow(table.name, table.summary, table.column_names) for table in TABLES.values()]
        views = [QueryableRow(view.name, view.summary, view.columns) for view in VIEWS]
        chosen.show([*tables, *views], kind="pipeline-sql-tables")
        return
    from kgctl.pipelines.views.query import NOT_UTF_8, run_query

    try:
        text = sys.stdin.read() if statement == "-" else statement
    except UnicodeDecodeError:
        raise BadValue(NOT_UTF_8) from None
    found = run_query(out, text)
    chosen.show(found.rows, kind="pipeline-sql", row=found.row)
