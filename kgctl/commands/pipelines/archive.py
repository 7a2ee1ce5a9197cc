"""`kgctl pipeline archive`: turns options into settings and starts the run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from kgctl.commands.pipelines.run import finish
from kgctl.commands.pipelines.run_options import (
    Conf,
    Follow,
    JsonLines,
    Master,
    MaxOutage,
    Once,
    Source,
    SourceOption,
    Trigger,
    check_once,
    settings_of,
)
from kgctl.commands.records.consume_options import Isolation, IsolationLevel
from kgctl.commands.shared.effects import reads
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.times import check_span, parse_datetime

EPILOG = (
    "Exit codes: those of kgctl; 1 Spark failed (with the end of its log, unless the message says it all), 4 the committed offsets of groups could not be archived (the records are), 5 a topic does not exist, 6 the folder holds "
    "the archive of another cluster or of a topic that was deleted and created again, a log was truncated, or another run "
    "writes to the folder, 7 the cluster cannot be reached, or with --follow for longer than --max-outage, 130 interrupted. To resume, start the same command again."
    "\n\n"
    + examples(
        "kgctl pipeline archive orders payments --out archive",
        "kgctl pipeline archive orders --out archive --follow --trigger 60",
        "kgctl pipeline archive --all-topics --out archive",
        "kgctl pipeline archive orders --from now-7d --until now-1d --out week",
    )
)


@reads
def archive(
    ctx: typer.Context,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The archive; a later run adds to it.")],
    topics: Annotated[
        list[str] | None,
        typer.Argument(metavar="TOPIC...", show_default=False, help="The topics to archive, or --all-topics."),
    ] = None,
    all_topics: Annotated[bool, typer.Option("--all-topics", help="Archive all topics, except internal ones.")] = False,
    once: Once = False,
    follow: Follow = False,
    since: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="earliest|latest|TIME",
            help="Where to start reading a topic that is not in the archive yet; TIME: ISO 8601, milliseconds, or now-7d.",
        ),
    ] = "earliest",
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="TIME", help="Stop before the first record at or after this time."),
    ] = None,
    isolation: IsolationLevel = Isolation.READ_COMMITTED,
    source: Source = "kgctl",
    trigger: Trigger = 60.0,
    max_outage: MaxOutage = "15m",
    max_offsets: Annotated[
        int | None,
        typer.Option(
            "--max-offsets-per-trigger",
            metavar="N",
            min=1,
            help="Maximum number of records per commit. [default: 2000000]",
        ),
    ] = None,
    master: Master = "local[*]",
    conf: Conf = None,
    option: SourceOption = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="For little data: the JVM starts faster but runs slower.")
    ] = False,
    json_lines: JsonLines = False,
) -> None:
    """Write topics to Parquet files with a manifest of checksums.

    An archive keeps keys, values, headers, timestamps and offsets, and the committed offsets of groups in these topics. Each
    run continues where the archive ends. Each commit is written completely, once, or not at all.
    """
    check_once(once=once, follow=follow)
    if follow and until is not None:
        raise typer.BadParameter("A run with --follow does not end.", param_hint="'--until'")
    names = tuple(dict.fromkeys(topics or ()))
    if bool(names) == all_topics:
        both = ", not both" if names else ""
        raise typer.BadParameter(f"Give topics or --all-topics{both}.", param_hint="'TOPIC'")
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
    until_ms = None if until is None else parse_datetime(until, "--until")
    check_span(common.since if isinstance(common.since, int) else None, until_ms)
    archiving = replace(
        common,
        archived=names,
        archives_all=all_topics,
        until_ms=until_ms,
        isolation_level=isolation.value,
    )
    finish(archiving, json_lines)
