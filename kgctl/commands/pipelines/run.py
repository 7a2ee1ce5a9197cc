"""`kgctl pipeline run`: turns options into settings, starts the run and shows its progress."""

from __future__ import annotations

import difflib
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from kgctl.client.net.errors import BadValue, Precondition
from kgctl.commands.pipelines.run_options import (
    LOG_NAME,
    Conf,
    Follow,
    JsonLines,
    Master,
    MaxOutage,
    Once,
    Source,
    SourceOption,
    Trigger,
    above_zero,
    check_once,
    is_given,
    local_folder,
    one_of,
    settings_of,
)
from kgctl.commands.pipelines.shown_progress import ShownProgress
from kgctl.commands.shared.effects import check_change, decides_itself
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.patterns import parsed
from kgctl.commands.shared.times import parse_duration
from kgctl.exit_codes import INTERRUPTED
from kgctl.pipelines.catalog import JOBS, Job, in_order, writer_of
from kgctl.pipelines.progress import Progress
from kgctl.pipelines.results.tables import statuses_of, verdict_tables
from kgctl.pipelines.results.targets import FORMS, Target, parse_target, read_headers
from kgctl.pipelines.runner import RunFailed
from kgctl.pipelines.runner import run as run_pipeline
from kgctl.pipelines.schemas import TABLES
from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.tables.formats import FORMATS, check_format, format_of, open_table
from kgctl.render import note

LIMITS = tuple(statuses_of(verdict_tables(JOBS)))
JOB_HELP = f"{', '.join(JOBS)}; see `kgctl pipeline list`."
EXIT_CODES = (
    "Exit codes: those of kgctl; 1 a job failed (with the end of Spark's log, unless the message says it all), 3 a group has the status of --fail-on or a worse one, "
    "4 a sink failed (the tables are complete), 5 no group has committed yet or no topic matches --topics, 6 the folder "
    "holds another cluster's tables, its checkpoint is damaged or missing, or another run is writing to it, 7 the cluster "
    "cannot be reached, or with --follow for longer than --max-outage, 130 interrupted. "
    "To resume a run that failed, start it again."
)
EPILOG = (
    EXIT_CODES
    + "\n\n"
    + examples(
        "kgctl pipeline run decode lag evaluate rebalances --out facts --report",
        "kgctl pipeline run decode lag --out facts --follow --trigger 30",
        "kgctl pipeline run decode evaluate --out facts --fail-on stalled",
        "kgctl pipeline run decode --out facts --master spark://host:7077",
    )
)


@decides_itself
def run(
    ctx: typer.Context,
    jobs: Annotated[list[str], typer.Argument(metavar="JOB...", show_default=False, help=JOB_HELP)],
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="The folder for the tables; a later run adds to them.")
    ],
    once: Once = False,
    follow: Follow = False,
    report: Annotated[bool, typer.Option("--report", help="Write the report after the jobs.")] = False,
    source: Source = "kgctl",
    since: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="earliest|latest|TIME",
            help="Where the first run starts to read; TIME: ISO 8601, milliseconds, or now-7d.",
        ),
    ] = "earliest",
    step: Annotated[
        float,
        typer.Option(
            "--step",
            metavar="SECONDS",
            help="Time between two points of lag; windows of commit_rates are as long, those of churn 60 times, buckets of "
            "anomalies 5 times.",
        ),
    ] = 60.0,
    topics: Annotated[
        str | None,
        typer.Option(
            "--topics",
            metavar="REGEX",
            callback=parsed("--topics"),
            help="For retention, compaction and producers: only topics whose whole name matches. [default: all]",
        ),
    ] = None,
    scan_every: Annotated[
        float,
        typer.Option("--scan-every", metavar="SECONDS", help="With --follow: how often retention and compaction run."),
    ] = 3600.0,
    trigger: Trigger = 10.0,
    max_outage: MaxOutage = "15m",
    max_offsets: Annotated[
        int | None,
        typer.Option(
            "--max-offsets-per-trigger",
            metavar="N",
            min=1,
            help="Maximum number of records per batch. [default: 2000000]",
        ),
    ] = None,
    table_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="|".join(FORMATS),
            help="The format of the tables; delta and iceberg need the extra of that name. [default: that of DIR, or "
            "parquet]",
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint", metavar="DIR", help="The folder for Spark's checkpoints. [default: _checkpoints in --out]"
        ),
    ] = None,
    master: Master = "local[*]",
    remote: Annotated[
        str | None, typer.Option("--remote", metavar="URL", help="A Spark Connect server, sc://HOST:PORT.")
    ] = None,
    conf: Conf = None,
    option: SourceOption = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="For little data: the JVM starts faster but runs slower. [default: with --once and up to 200,000 records]",
        ),
    ] = False,
    sink: Annotated[
        list[str] | None,
        typer.Option(
            "--sink",
            metavar="KIND:WHERE",
            help=f"Where to send verdicts: {', '.join(FORMS)}; repeatable.",
        ),
    ] = None,
    webhook_headers: Annotated[
        Path | None,
        typer.Option(
            "--webhook-headers", metavar="FILE", help="HTTP headers for webhooks, one `Name: value` per line."
        ),
    ] = None,
    repeat: Annotated[
        str,
        typer.Option(
            "--repeat", metavar="DURATION", help="How often topics and webhooks get a persistent fault again."
        ),
    ] = "4h",
    fail_on: Annotated[
        str | None,
        typer.Option(
            "--fail-on",
            metavar="STATUS",
            help=f"Exit with code 3 if a group has this status or a worse one: {', '.join(LIMITS)}.",
        ),
    ] = None,
    timings: Annotated[bool, typer.Option("--timings", help="Show how long each phase took.")] = False,
    json_lines: JsonLines = False,
) -> None:
    """Run jobs one after another in one Spark session.

    The jobs write tables to DIR, as Parquet files that other programs can read at any time.

    A verdict is the health of a group: that of its worst partition. With --sink, topics and webhooks get each change of a
    verdict, and a persistent fault again every --repeat. A Prometheus file has all groups after each evaluation.
    """
    check_once(once=once, follow=follow)
    if follow and report:
        raise typer.BadParameter(
            "A run with --follow does not end; use `kgctl pipeline report` instead.", param_hint="'--report'"
        )
    chosen = in_order(known_job(name).name for name in jobs)
    format_name = one_of(table_format or format_of(out), FORMATS, "--format")
    check_format(out, format_name, list(TABLES))
    _check_inputs(chosen, out)
    targets = [_target(text) for text in sink or ()]
    names = [job.name for job in chosen]
    if fail_on is not None and follow:
        raise typer.BadParameter("A run with --follow does not end; use --sink instead.", param_hint="'--fail-on'")
    limit = None if fail_on is None else one_of(fail_on.upper(), LIMITS, "--fail-on")
    kinds = {target.kind for target in targets}
    if webhook_headers is not None and "webhook" not in kinds:
        raise typer.BadParameter("Give it with --sink webhook.", param_hint="'--webhook-headers'")
    if is_given(ctx, "repeat") and not kinds & {"kafka", "webhook"}:
        raise typer.BadParameter("Give it with --sink kafka or webhook.", param_hint="'--repeat'")
    if targets and not verdict_tables(names):
        raise typer.BadParameter(f"None of these jobs judges groups: add {_judges()}.", param_hint="'--sink'")
    if limit is not None and limit not in statuses_of(verdict_tables(names)):
        raise typer.BadParameter(f"None of these jobs finds {limit}: add {_judges(limit)}.", param_hint="'--fail-on'")
    if topics is not None and not any(job.selects_topics for job in chosen):
        selecting = _listing(job.name for job in JOBS.values() if job.selects_topics)
        raise typer.BadParameter(f"It has no effect on these jobs, only on {selecting}.", param_hint="'--topics'")
    if follow and is_given(ctx, "scan_every") and not any(job.is_rare for job in chosen):
        rare = _listing(job.name for job in JOBS.values() if job.is_rare)
        raise typer.BadParameter(f"It has no effect on these jobs, only on {rare}.", param_hint="'--scan-every'")
    changed = [target.where for target in targets if target.kind == "kafka"]
    if changed:
        check_change(ctx, changed, f"`{ctx.command_path}` with --sink kafka")
    common = settings_of(
        ctx,
        out,
        max_outage=max_outage,
        source=source,
        since=since,
        follow=follow,
        trigger=trigger,
        max_offsets=max_offsets,
        master=master,
        conf=conf,
        option=option,
        quick=quick,
    )
    run_settings = replace(
        common,
        table_format=format_name,
        jobs=tuple(names),
        step_s=above_zero(step, "--step"),
        topics=topics,
        scan_every_s=above_zero(scan_every, "--scan-every"),
        checkpoint=None if checkpoint is None else local_folder(checkpoint, "--checkpoint"),
        remote=remote,
        report=report,
        sinks=tuple(f"{target.kind}:{target.where}" for target in targets),
        webhook_headers=_headers(webhook_headers, targets),
        repeat_s=parse_duration(repeat, "--repeat") / 1000,
        fail_on=limit,
    )
    finish(run_settings, json_lines, timings)


def report_only(out: Path) -> None:
    """Write the report from existing tables."""
    finish(RunSettings((), "", str(out.absolute()), report=True, log_file=str(out.absolute() / LOG_NAME)), False)


def known_job(name: str) -> Job:
    if name not in JOBS:
        near = difflib.get_close_matches(name, JOBS, 1)
        hint = f" Did you mean {near[0]}?" if near else f" The jobs are {', '.join(JOBS)}."
        raise typer.BadParameter(f"there is no job {name!r}.{hint}", param_hint="'JOB'")
    return JOBS[name]


def finish(run_settings: RunSettings, json_lines: bool, timings: bool = False) -> None:
    shown = ShownProgress(json_lines=json_lines, timings=timings, follow=run_settings.follow)
    began = time.monotonic()
    try:
        has_ended = run_pipeline(run_settings, shown.show)
    except RunFailed as failure:
        shown.close()
        if failure.log and failure.exit_code == 1:
            note(f"The end of {run_settings.log_file}:")
            for text in failure.log.splitlines():
                note(f"  {text.expandtabs(4)}")
        if json_lines:
            sys.stdout.write(Progress("failed", str(failure), exit_code=failure.exit_code).to_json() + "\n")
        raise
    finally:
        shown.end()
    if not has_ended:
        note("Interrupted. What was committed stays; the next run continues from there.")
        raise typer.Exit(INTERRUPTED)
    if run_settings.is_archive:
        note(f"Done in {time.monotonic() - began:.0f} s; the archive is in {run_settings.out}")
    if run_settings.jobs:
        note(f"Done in {time.monotonic() - began:.0f} s; the tables are in {run_settings.out}")


def _check_inputs(jobs: list[Job], out: Path) -> None:
    """A job whose input does not exist yet would succeed and write nothing."""
    needed = list(jobs)
    reasons = []
    for job in needed:
        for table in job.tables:
            writer = writer_of(table)
            if writer not in needed and not open_table(out / table.name).state().committed:
                needed.append(writer)
                reasons.append(f"job {job.name} reads the table {table.name}, which does not exist yet")
    if reasons:
        names = [job.name for job in in_order(job.name for job in needed[len(jobs) :])]
        raise Precondition(f"{reasons[0]}: run {_listed('job', names)} too")


def _listed(noun: str, names: list[str]) -> str:
    return f"{noun if len(names) == 1 else f'{noun}s'} {_listing(names)}"


def _target(text: str) -> Target:
    try:
        return parse_target(text)
    except BadValue as error:
        raise typer.BadParameter(f"{error}.", param_hint="'--sink'") from None


def _headers(path: Path | None, targets: list[Target]) -> tuple[tuple[str, str], ...]:
    if path is None:
        return ()
    try:
        return read_headers(path, targets)
    except BadValue as error:
        raise typer.BadParameter(f"{error}.", param_hint="'--webhook-headers'") from None


def _judges(limit: str | None = None) -> str:
    """The jobs that judge groups, or that have this verdict."""
    tables_of = {job.name: verdict_tables([job.name]) for job in JOBS.values()}
    return _either(
        name for name, tables in tables_of.items() if tables and (limit is None or limit in statuses_of(tables))
    )


def _either(names: Iterable[str]) -> str:
    return _listing(names, "or")


def _listing(names: Iterable[str], before_last: str = "and") -> str:
    *others, last = names
    return f"{', '.join(others)} {before_last} {last}" if others else last
