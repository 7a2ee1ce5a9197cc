"""`kgctl pipeline archive`: turns options into settings and starts the run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kgctl.commands.pipelines.run import LOG_NAME, above_zero, finish, one_of, pair, since_of, source_option
from kgctl.commands.records.consume_options import Isolation, IsolationLevel
from kgctl.commands.shared.effects import reads
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.settings import settings
from kgctl.commands.shared.times import parse_datetime
from kgctl.pipelines.settings import SOURCES, RunSettings

EPILOG = (
    "Exit codes: those of kgctl; 1 Spark failed (the end of its log is shown), 5 a topic does not exist, 6 the folder holds "
    "the archive of another cluster or of a topic that was deleted and created again, a log was truncated, or another run "
    "writes to the folder, 7 the cluster cannot be reached, 130 interrupted. To resume, start the same command again."
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
        list[str] | None, typer.Argument(metavar="TOPIC...", show_default=False, help="The topics to archive.")
    ] = None,
    all_topics: Annotated[
        bool, typer.Option("--all-topics", help="Archive all topics, except the cluster's own.")
    ] = False,
    once: Annotated[bool, typer.Option("--once", help="Read up to the current end of the topics. [default]")] = False,
    follow: Annotated[bool, typer.Option("--follow", help="Keep running until Ctrl-C.")] = False,
    since: Annotated[
        str,
        typer.Option(
            "--from", metavar="earliest|latest|TIME", help="Where the archive of a topic that is new to it begins."
        ),
    ] = "earliest",
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="TIME", help="Read only up to the first record at or after this time."),
    ] = None,
    isolation: IsolationLevel = Isolation.READ_COMMITTED,
    source: Annotated[
        str,
        typer.Option(
            "--source",
            metavar="|".join(SOURCES),
            help="kgctl: kgctl's own reader; kafka: Spark's connector, if its jars are installed.",
        ),
    ] = "kgctl",
    trigger: Annotated[
        float, typer.Option("--trigger", metavar="SECONDS", help="With --follow: how often to check for new records.")
    ] = 60.0,
    max_offsets: Annotated[
        int | None,
        typer.Option(
            "--max-offsets-per-trigger",
            metavar="N",
            min=1,
            help="Maximum number of records per commit. [default: 2000000]",
        ),
    ] = None,
    master: Annotated[
        str, typer.Option("--master", metavar="URL", help="local[*], spark://HOST:PORT, yarn or k8s://URL.")
    ] = "local[*]",
    conf: Annotated[
        list[str] | None, typer.Option("--conf", metavar="KEY=VALUE", help="A Spark setting; repeatable.")
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option("--option", metavar="KEY=VALUE", help="An option of the source; repeatable.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="For little data: the JVM starts faster but runs slower.")
    ] = False,
    json_lines: Annotated[bool, typer.Option("--json", help="Write progress as JSON Lines to stdout.")] = False,
) -> None:
    """Write topics to Parquet files with a manifest of checksums.

    Keys, values, headers, timestamps and offsets are kept, and the committed offsets of the groups of these topics. Each run
    continues where the archive ends; a commit appears completely, once, or not at all.
    """
    if once and follow:
        raise typer.BadParameter("Give --once or --follow, not both.", param_hint="'--once', '--follow'")
    if follow and until is not None:
        raise typer.BadParameter("A run with --follow does not end.", param_hint="'--until'")
    names = tuple(dict.fromkeys(topics or ()))
    if bool(names) == all_topics:
        raise typer.BadParameter("Name topics, or give --all-topics.", param_hint="'TOPIC'")
    connection = settings(ctx).portable_connection()
    finish(
        RunSettings(
            jobs=(),
            archived=names,
            archives_all=all_topics,
            bootstrap=",".join(map(str, connection.bootstrap)),
            out=str(out.absolute()),
            source=one_of(source, SOURCES, "--source"),
            since=since_of(since),
            until_ms=None if until is None else parse_datetime(until, "--until"),
            isolation_level=isolation.value,
            follow=follow,
            trigger_s=above_zero(trigger, "--trigger"),
            max_offsets_per_trigger=max_offsets,
            master=master,
            conf=tuple(pair(text, "--conf") for text in conf or ()),
            source_options=tuple(map(source_option, option or ())),
            quick=quick,
            timeout_s=connection.timeout,
            log_file=str(out.absolute() / LOG_NAME),
            read_only=settings(ctx).target().is_read_only,
            connection_properties=tuple(one for one in connection.properties if one[0] != "bootstrap.servers"),
        ),
        json_lines,
    )
