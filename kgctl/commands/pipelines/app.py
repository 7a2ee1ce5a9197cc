"""`kgctl pipeline`: analyzes groups and topics with Spark, and archives and replays topics."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from kgctl.client.net.errors import NotFound
from kgctl.commands.pipelines import archive as pipeline_archive
from kgctl.commands.pipelines import bench as pipeline_bench
from kgctl.commands.pipelines import maintain as pipeline_maintain
from kgctl.commands.pipelines import replay as pipeline_replay
from kgctl.commands.pipelines import restore_groups as pipeline_restore_groups
from kgctl.commands.pipelines import run as pipeline_run
from kgctl.commands.pipelines import sql as pipeline_sql
from kgctl.commands.pipelines import verify as pipeline_verify
from kgctl.commands.shared.effects import local, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.settings import settings
from kgctl.model.pipelines import ColumnRow, FindingRow, JobRow, TableRow
from kgctl.pipelines.archive.maintenance import is_archive
from kgctl.pipelines.catalog import JOBS, Job
from kgctl.pipelines.schemas import TABLES
from kgctl.pipelines.schemas.model import Table
from kgctl.pipelines.tables.formats import open_table
from kgctl.render import TABLES as TABLE_OUTPUTS
from kgctl.render.prose import show_paragraphs

pipeline_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Analyze groups and topics with Spark; archive and replay them. Needs the extra kgctl[pipelines].",
)

Out = Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder with the tables of a run.")]


@pipeline_app.command("list", epilog=examples("kgctl pipeline list", "kgctl pipeline list -o json"))
@shows("pipeline-jobs")
@local
def list_jobs(ctx: typer.Context) -> None:
    """List the jobs, and what they read and write."""
    rows = [
        JobRow(job.name, job.reads, tuple(table.name for table in job.writes), job.summary) for job in JOBS.values()
    ]
    settings(ctx).show(rows, kind="pipeline-jobs")


@pipeline_app.command(epilog=examples("kgctl pipeline explain lag", "kgctl pipeline explain evaluate -o csv"))
@shows("pipeline-columns")
@local
def explain(ctx: typer.Context, job: Annotated[str, typer.Argument(metavar="JOB", help=pipeline_run.JOB_HELP)]) -> None:
    """Explain how a job works and what its columns mean."""
    found = pipeline_run.known_job(job)
    rows = [
        ColumnRow(table.name, column.name, column.type, column.meaning)
        for table in found.writes
        for column in table.columns
    ]
    if settings(ctx).output in TABLE_OUTPUTS:
        show_paragraphs([f"{found.name}: {found.summary}.", found.description, f"Reads {', '.join(found.reads)}."])
    settings(ctx).show(rows, kind="pipeline-columns")


@pipeline_app.command(epilog=examples("kgctl pipeline doctor", "kgctl pipeline doctor -o json"))
@shows("pipeline-doctor")
@local
def doctor(ctx: typer.Context) -> None:
    """Check whether this machine has what the pipelines need. Exit code 1 if a run would fail."""
    from kgctl.pipelines.doctor import examine

    rows = [FindingRow(one.what, one.found, one.ok, one.advice or None) for one in examine()]
    settings(ctx).show(rows, kind="pipeline-doctor")
    if any(row.ok is False for row in rows):
        raise typer.Exit(1)


pipeline_app.command("run", epilog=pipeline_run.EPILOG)(pipeline_run.run)
pipeline_app.command("archive", epilog=pipeline_archive.EPILOG)(pipeline_archive.archive)
pipeline_app.command("verify", epilog=pipeline_verify.EPILOG)(pipeline_verify.verify)


@pipeline_app.command(epilog=examples("kgctl pipeline status --out facts"))
@shows("pipeline-status")
@local
def status(ctx: typer.Context, out: Out) -> None:
    """Show the size and last write of each table in a folder.

    Exit code 5 if there are no tables.
    """
    rows = [_table_row(out, job, table) for job in JOBS.values() for table in job.writes]
    found = [row for row in rows if row.batches]
    if not found:
        raise _no_tables(out)
    settings(ctx).show(found, kind="pipeline-status")


@pipeline_app.command(epilog=examples("kgctl pipeline report --out facts"))
@local
def report(ctx: typer.Context, out: Out) -> None:
    """Write report.html and its charts from the tables of a run.

    The path of the page goes to stderr.
    """
    if not any(open_table(out / name).state().committed for name in TABLES):
        raise _no_tables(out)
    pipeline_run.report_only(out)


pipeline_app.command("replay", epilog=pipeline_replay.EPILOG)(pipeline_replay.replay)
pipeline_app.command("restore-groups", epilog=pipeline_restore_groups.EPILOG)(pipeline_restore_groups.restore_groups)
pipeline_app.command("sql", epilog=pipeline_sql.EPILOG)(pipeline_sql.sql)
pipeline_app.command("maintain", epilog=pipeline_maintain.EPILOG)(pipeline_maintain.maintain)
pipeline_app.command("bench", epilog=pipeline_bench.EPILOG)(pipeline_bench.bench)


def _no_tables(out: Path) -> NotFound:
    if is_archive(out):
        return NotFound(f"{out} is an archive and holds no tables; `kgctl pipeline verify {out}` shows what it holds")
    return NotFound(f"{out} holds no tables; `kgctl pipeline run --out {out}` writes them")


def _table_row(out: Path, job: Job, table: Table) -> TableRow:
    state = open_table(out / table.name).state()
    return TableRow(
        table=table.name,
        job=job.name,
        rows=state.rows,
        files=len(state.files),
        size_bytes=sum(file.size for file in state.files),
        batches=state.committed,
        written=None
        if state.written_ms is None
        else datetime.fromtimestamp(state.written_ms / 1000, UTC).isoformat(timespec="seconds"),
    )
