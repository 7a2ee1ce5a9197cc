"""`kgctl pipeline run`: from options to a run, and from its progress to what a person or a script reads."""

from __future__ import annotations

import difflib
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from kgctl.client.net.errors import Precondition
from kgctl.commands.settings import settings
from kgctl.commands.times import parse_datetime
from kgctl.pipelines.catalog import JOBS, Job, in_order
from kgctl.pipelines.runner import INTERRUPTED, RunFailed
from kgctl.pipelines.runner import run as run_pipeline
from kgctl.pipelines.settings import SOURCES, Progress, RunSettings
from kgctl.pipelines.tables.manifest import TableFolder
from kgctl.render import note
from kgctl.render.progress import ProgressLine

LOG_NAME = "spark.log"
EXIT_CODES = (
    "Exit codes: those of kgctl; 1 a job failed (the end of Spark's log is shown), 5 no group has committed yet, 6 the folder "
    "holds another cluster's tables or another run writes to it, 7 the cluster cannot be reached, 130 interrupted. "
    "A run that failed goes on where it stopped when it is given again."
)


def run(
    ctx: typer.Context,
    jobs: Annotated[list[str], typer.Argument(metavar="JOB...", show_default=False)],
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where the tables are kept; a later run goes on there.")
    ],
    once: Annotated[bool, typer.Option("--once", help="Up to what is there now. [default]")] = False,
    follow: Annotated[bool, typer.Option("--follow", help="Until Ctrl-C.")] = False,
    report: Annotated[bool, typer.Option("--report", help="Write the report when the jobs are done.")] = False,
    source: Annotated[
        str,
        typer.Option(
            "--source",
            metavar="|".join(SOURCES),
            help="kgctl: our own reader; kafka: Spark's connector, if its jars are here.",
        ),
    ] = "kgctl",
    since: Annotated[
        str, typer.Option("--from", metavar="earliest|latest|TIME", help="Where a first run begins to read.")
    ] = "earliest",
    step: Annotated[
        float, typer.Option("--step", metavar="SECONDS", help="How far apart the points of lag are.")
    ] = 60.0,
    trigger: Annotated[
        float, typer.Option("--trigger", metavar="SECONDS", help="With --follow: how often to look for more.")
    ] = 10.0,
    max_offsets: Annotated[
        int | None,
        typer.Option("--max-offsets-per-trigger", metavar="N", min=1, help="The most records that one batch reads."),
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option("--checkpoint", metavar="DIR", help="[default: _checkpoints in --out]")
    ] = None,
    master: Annotated[
        str, typer.Option("--master", metavar="URL", help="local[*], spark://HOST:PORT, yarn or k8s://URL.")
    ] = "local[*]",
    remote: Annotated[
        str | None, typer.Option("--remote", metavar="URL", help="A Spark Connect server, sc://HOST:PORT.")
    ] = None,
    conf: Annotated[
        list[str] | None, typer.Option("--conf", metavar="KEY=VALUE", help="One setting of Spark; repeatable.")
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="KEY=VALUE", help="One option of the source; repeatable."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="For little data: the JVM starts faster and runs slower.")
    ] = False,
    json_lines: Annotated[bool, typer.Option("--json", help="Progress as JSON lines on stdout.")] = False,
) -> None:
    """Run jobs in turn in one Spark session; their tables are Parquet in DIR, which other programs may read any time."""
    if once and follow:
        raise typer.BadParameter("Give --once or --follow, not both.", param_hint="'--once', '--follow'")
    if follow and report:
        raise typer.BadParameter(
            "A run that follows has no end to report; see `kgctl pipeline report`.", param_hint="'--report'"
        )
    names = in_order([known_job(name).name for name in jobs])
    _check_order(names, out)
    run_settings = RunSettings(
        jobs=tuple(names),
        bootstrap=",".join(map(str, settings(ctx).connection().bootstrap)),
        out=str(out.absolute()),
        source=_one_of(source, SOURCES, "--source"),
        since=_since(since),
        follow=follow,
        trigger_s=_above_zero(trigger, "--trigger"),
        step_s=_above_zero(step, "--step"),
        max_offsets_per_trigger=max_offsets,
        checkpoint=None if checkpoint is None else str(checkpoint.absolute()),
        master=master,
        remote=remote,
        conf=tuple(_pair(text, "--conf") for text in conf or ()),
        source_options=tuple(_pair(text, "--option") for text in option or ()),
        quick=quick,
        report=report,
        timeout_s=settings(ctx).timeout,
        log_file=str(out.absolute() / LOG_NAME),
    )
    _finish(run_settings, json_lines)


def report_only(out: Path) -> None:
    """The report from the tables that are there."""
    _finish(RunSettings((), "", str(out.absolute()), report=True, log_file=str(out.absolute() / LOG_NAME)), False)


def known_job(name: str) -> Job:
    if name not in JOBS:
        near = difflib.get_close_matches(name, JOBS, 1)
        hint = f" Did you mean {near[0]}?" if near else f" There are {', '.join(JOBS)}."
        raise typer.BadParameter(f"there is no job {name!r}.{hint}", param_hint="'JOB'")
    return JOBS[name]


def _finish(run_settings: RunSettings, json_lines: bool) -> None:
    line = ProgressLine(json_lines)
    began = time.monotonic()
    try:
        code = run_pipeline(run_settings, line.tell)
    except RunFailed as failure:
        line.close()
        if failure.log and failure.exit_code == 1:
            note(f"The end of {run_settings.log_file}:")
            for text in failure.log.splitlines():
                note(f"  {text}")
        if json_lines:
            sys.stdout.write(Progress("failed", str(failure), exit_code=failure.exit_code).to_json() + "\n")
        raise
    finally:
        line.close()
    if code == INTERRUPTED:
        note("Interrupted; what was committed stays, and the next run goes on there.")
        raise typer.Exit(INTERRUPTED)
    if run_settings.jobs:
        note(f"Done after {time.monotonic() - began:.0f} s; tables in {run_settings.out}")


def _check_order(names: list[str], out: Path) -> None:
    """A job whose input nobody has written would succeed with nothing."""
    for name in names:
        for table in JOBS[name].reads:
            writer = next((job.name for job in JOBS.values() if table in job.writes), None)
            if writer is None or writer in names or TableFolder(out / table).batches():
                continue
            raise Precondition(f"job {name} reads {table}, which job {writer} writes: run {writer} first, or with it")


def _one_of(value: str, known: tuple[str, ...], option: str) -> str:
    if value not in known:
        raise typer.BadParameter(f"{value!r} is not one of {', '.join(known)}.", param_hint=f"'{option}'")
    return value


def _since(text: str) -> str | int:
    if text in ("earliest", "latest"):
        return text
    return parse_datetime(text, "--from")


def _above_zero(value: float, option: str) -> float:
    if not 0 < value <= 86400 * 365:
        raise typer.BadParameter(f"{value:g} is not a number of seconds above 0.", param_hint=f"'{option}'")
    return value


def _pair(text: str, flag: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise typer.BadParameter(f"{text!r} is not KEY=VALUE.", param_hint=f"'{flag}'")
    return key, value
