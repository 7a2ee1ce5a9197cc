"""`kgctl pipeline maintain`: drops old days of tables, and merges small files of tables and of archives."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated

import typer

from kgctl.client.net.errors import NotFound
from kgctl.commands.shared.arguments import Execute
from kgctl.commands.shared.effects import local, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.outcome import note_dry_run
from kgctl.commands.shared.settings import settings
from kgctl.commands.shared.times import parse_duration
from kgctl.model.changes import DONE, PLANNED
from kgctl.model.pipelines import MaintenanceRow
from kgctl.pipelines.archive import maintenance as archives
from kgctl.pipelines.schemas import TABLES
from kgctl.pipelines.tables import maintenance
from kgctl.pipelines.tables.retention import Keep

EPILOG = (
    "Exit codes: those of kgctl; 5 there are no tables and no archive, 6 a run is writing to the folder, or a program keeps reading a table for "
    "more than 30 seconds.\n\n"
    + examples(
        "kgctl pipeline maintain --out facts --merge",
        "kgctl pipeline maintain --out archive --merge --execute",
        "kgctl pipeline maintain --out facts --keep 90d --keep f_lag=30d --execute",
        "kgctl pipeline maintain --out facts --keep 30d --keep health=all --execute",
    )
)
_DAY_MS, _ALL = 86_400_000, "all"


@shows("pipeline-maintenance")
@local
def maintain(
    ctx: typer.Context,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="The folder with the tables of a run, or an archive.")
    ],
    merge: Annotated[
        bool, typer.Option("--merge", help="Merge the small files of a day into files of up to 256 MiB.")
    ] = False,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            metavar="[TABLE=]DAYS",
            help="Drop days (UTC) that ended longer ago than DAYS, such as 30d; all: keep all days. Repeatable; an entry with a "
            "table takes precedence over one without. [default: drop nothing]",
        ),
    ] = None,
    execute: Execute = False,
) -> None:
    """Drop old days of tables, and merge small files.

    An archive keeps all of its records; only its small files are merged. Readers see each day either before or after the change.
    A stream that repeats a batch still does not write it again. A run cannot use the folder at the same time; a run with
    --follow merges small files itself.
    """
    if not (merge or keep):
        raise typer.BadParameter("Give at least one of them.", ctx=ctx, param_hint="'--merge', '--keep'")
    days = _keep(keep or [])
    has_archive, has_tables = archives.is_archive(out), maintenance.has_tables(out)
    if not (has_archive or has_tables):
        raise NotFound(
            f"{out} holds no tables and no archive; `kgctl pipeline run --out {out}` and `kgctl pipeline archive` write them"
        )
    if keep and not has_tables:
        archives.refuse_retention()
    steps = []
    if has_tables:
        steps += (maintenance.maintain if execute else maintenance.plan)(out, keep=days, merges=merge)
    if has_archive and merge:
        steps += (archives.maintain if execute else archives.plan)(out)
    rows = [
        MaintenanceRow(
            table=step.table,
            action=step.action,
            days=step.days,
            files=len(step.files),
            files_after=step.files_after,
            rows=step.rows,
            size_bytes=step.size,
            status=DONE if execute else PLANNED,
        )
        for step in steps
    ]
    settings(ctx).show(rows, kind="pipeline-maintenance")
    note_dry_run(execute, [None] * len(rows))


def _keep(given: list[str]) -> Keep:
    every: int | None = None
    of_table: dict[str, int | None] = {}
    for text in given:
        table, equals, days = text.rpartition("=")
        if not equals:
            every = _days(days)
        elif table in TABLES:
            of_table[table] = _days(days)
        else:
            near = difflib.get_close_matches(table, TABLES, 1)
            hint = f"Did you mean {near[0]}?" if near else f"The tables are {', '.join(TABLES)}."
            raise typer.BadParameter(f"there is no table {table!r}. {hint}", param_hint="'--keep'")
    return Keep(every, of_table)


def _days(text: str) -> int | None:
    if text == _ALL:
        return None
    ms = parse_duration(text, "--keep")
    if ms % _DAY_MS:
        raise typer.BadParameter(f"{text!r} is not a number of days, such as 30d.", param_hint="'--keep'")
    return ms // _DAY_MS
