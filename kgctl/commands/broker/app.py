"""`kgctl broker`: start, stop and inspect the local broker of a data directory."""

from __future__ import annotations

import os
import sys
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kgctl import exit_codes
from kgctl.client.net.errors import NotFound
from kgctl.commands.broker import rescue
from kgctl.commands.broker.log_lines import follow_log, line_renderer
from kgctl.commands.broker.security import CONTEXT, probe
from kgctl.commands.broker.starting import StartFailed, progress_notes, show_started
from kgctl.commands.broker.state import directory_of, read_state, show_row
from kgctl.commands.shared.effects import local, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.settings import settings
from kgctl.model.local_broker import RUNNING
from kgctl.render import note

if TYPE_CHECKING:
    from collections.abc import Mapping

PROBE_TIMEOUT_S = 2.0
FORCE_AFTER_S = 10.0
EXIT_CODES = (
    "Exit codes of a failed start, in addition to those of kgctl: 2 wrong usage or configuration, 6 another broker holds the "
    "data directory, 11 damaged data (see --accept-loss and `kgctl broker rescue`), 12 data of a newer version, 13 no space left, 14 too few file "
    "descriptors, 15 cannot listen on the address, 16 network file system, 17 the data directory cannot be used, "
    "18 a write or sync failed. A running broker exits with 19 if its data directory was removed or replaced. With --foreground the broker exits with the same codes."
)

broker_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Run a local broker: one per data directory, in the background or in the foreground.",
)

DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir", metavar="DIR", help="The broker's data directory. [default: $XDG_DATA_HOME/kgctl/broker]"
    ),
]


@broker_app.command(
    epilog=EXIT_CODES
    + "\n\n"
    + examples(
        "kgctl broker start",
        "kgctl broker start --secure",
        "kgctl broker start --listen 127.0.0.1:0 --data-dir ./data",
        "kgctl broker start --override num.partitions=3 --foreground",
        "kgctl broker start --if-not-running && kgctl broker status --check",
    )
)
@shows("local-broker")
@local
def start(
    ctx: typer.Context,
    data_dir: DataDir = None,
    foreground: Annotated[
        bool, typer.Option("--foreground", help="Run in the foreground and log to stderr until a signal arrives.")
    ] = False,
    listen: Annotated[
        str | None,
        typer.Option(
            "--listen",
            metavar="HOST:PORT",
            help="Address to listen on; port 0 picks a free port. [default: 127.0.0.1:9092]",
        ),
    ] = None,
    ready_file: Annotated[
        Path | None,
        typer.Option(
            "--ready-file",
            metavar="FILE",
            help="Also write the ready file here, once the broker serves requests. It replaces an older ready file, but "
            "no other file. The directory must be yours or root's, and sticky like /tmp if every user may write to it.",
        ),
    ] = None,
    durability: Annotated[
        str,
        typer.Option(
            "--durability",
            metavar="power|process",
            help="What acknowledged records survive: a power cut, or only a crash of the broker process.",
        ),
    ] = "power",
    config: Annotated[
        list[Path] | None,
        typer.Option("--config", metavar="FILE", help="A .properties file with Kafka's broker options; repeatable."),
    ] = None,
    override: Annotated[
        list[str] | None,
        typer.Option("--override", metavar="KEY=VALUE", help="Set one option; overrides --config; repeatable."),
    ] = None,
    insecure_listen: Annotated[
        bool,
        typer.Option(
            "--insecure-listen",
            help="Allow an address that other machines can reach, without encryption or authentication.",
        ),
    ] = False,
    secure: Annotated[
        bool,
        typer.Option(
            "--secure",
            help="Listen with TLS and SASL/SCRAM. Makes, once, a certificate and the user admin, and keeps the context "
            f"{CONTEXT}. Only admin may do anything until ACLs allow more.",
        ),
    ] = False,
    accept_loss: Annotated[
        bool,
        typer.Option(
            "--accept-loss",
            help="Start even if acknowledged data is missing or damaged: read the whole store, "
            "report what is lost, and serve the rest.",
        ),
    ] = False,
    add_scram: Annotated[
        list[str] | None,
        typer.Option(
            "--add-scram",
            metavar="USER",
            help="Add a SCRAM user, or set its password: SCRAM-SHA-512=[name=NAME,password-file=FILE]; "
            "iterations=N is optional; repeatable.",
        ),
    ] = None,
    log_file: Annotated[
        Path | None,
        typer.Option("--log-file", metavar="FILE", help="Where to log. [default: broker.log in the data directory]"),
    ] = None,
    metrics_listen: Annotated[
        str | None,
        typer.Option(
            "--metrics-listen",
            metavar="HOST:PORT",
            help="Serve metrics for Prometheus at http://HOST:PORT/metrics, on a loopback address; port 0 picks a free port.",
        ),
    ] = None,
    if_not_running: Annotated[
        bool,
        typer.Option(
            "--if-not-running",
            help="Succeed if the broker of this data directory runs and answers; its options stay as they are.",
        ),
    ] = False,
) -> None:
    """Start the broker and wait until it serves requests.

    A start that takes longer than a second shows its progress. --timeout limits the time without progress: after a crash
    with many partitions, or with --accept-loss, a start may take longer.
    """
    from broker.local import DURABILITIES, BrokerFailed, broker_command, broker_environment, spawn_broker

    if durability not in DURABILITIES:
        raise typer.BadParameter(
            f"{durability!r} is not one of {', '.join(DURABILITIES)}.", ctx=ctx, param_hint="'--durability'"
        )
    directory = directory_of(data_dir)
    if if_not_running and _is_serving(ctx, directory, listen):
        return
    given: dict[str, str | Path | bool | list[Path] | list[str] | None] = {
        "--data-dir": directory,
        "--durability": durability,
        "--listen": listen,
        "--ready-file": ready_file,
        "--log-file": log_file,
        "--metrics-listen": metrics_listen,
        "--config": config,
        "--override": override,
        "--add-scram": add_scram,
        "--insecure-listen": insecure_listen,
        "--secure": secure,
        "--accept-loss": accept_loss,
    }
    arguments = _arguments(given)
    if foreground:
        sys.stdout.flush()
        os.execve(sys.executable, [*broker_command(), *arguments], broker_environment())
    try:
        process, ready, warnings = spawn_broker(
            arguments, directory, keep_stdin=False, timeout_s=settings(ctx).timeout, show_progress=progress_notes()
        )
    except BrokerFailed as failure:
        # Another start may have been faster.
        if if_not_running and failure.code == exit_codes.WRONG_STATE and _is_serving(ctx, directory, listen):
            return
        raise StartFailed(failure) from None
    # The broker outlives this process: keep Popen from warning about a child that still runs.
    process.returncode = 0
    show_started(settings(ctx), ready, warnings, is_default=directory == directory_of(None))


def _arguments(given: Mapping[str, str | Path | bool | list[Path] | list[str] | None]) -> list[str]:
    """The options as arguments of the broker; None and False stand for an option that is not given."""
    arguments: list[str] = []
    for name, value in given.items():
        for one in value if isinstance(value, list) else [value]:
            if one is not None and one is not False:
                arguments += [name] if one is True else [name, str(one)]
    return arguments


def _is_serving(ctx: typer.Context, directory: Path, listen: str | None) -> bool:
    """Whether a broker serves this directory already; its row is shown."""
    from kgctl.commands.broker.already_running import find_serving

    row = find_serving(directory, settings(ctx).timeout, listen)
    if row is not None:
        show_row(settings(ctx), row)
    return row is not None


@broker_app.command(
    epilog=examples("kgctl broker stop", "kgctl broker stop --data-dir ./data", "kgctl broker stop --force --timeout 5")
)
@local
def stop(
    ctx: typer.Context,
    data_dir: DataDir = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Kill the process if it has not stopped after 10 seconds (or --timeout), or is suspended."
        ),
    ] = False,
) -> None:
    """Stop the broker cleanly and wait until it has exited. Succeeds if no broker runs.

    Run it where the broker runs: the broker of another container cannot be stopped from outside. No acknowledged record is
    lost with --force; the next start takes longer.
    """
    from kgctl.commands.broker.stopping import stop_broker

    chosen, directory = settings(ctx), directory_of(data_dir)
    is_short = force and not chosen.is_timeout_given
    stop_broker(directory, min(chosen.timeout, FORCE_AFTER_S) if is_short else chosen.timeout, force=force)
    show_row(settings(ctx), read_state(directory))


@broker_app.command(
    epilog=examples("kgctl broker status", "kgctl broker status --timeout 10 -o json", "kgctl broker status --check")
)
@shows("local-broker")
@local
def status(
    ctx: typer.Context,
    data_dir: DataDir = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="For scripts: print nothing if the broker answers, else the reason on stderr."),
    ] = False,
) -> None:
    """Show whether the broker answers, and its address.

    The broker has 2 seconds to answer one request; --timeout changes that. Exit code 3 if it does not run or does not
    answer, also if its process exists but is suspended.
    """
    chosen = settings(ctx)
    row = read_state(directory_of(data_dir))
    if row.state == RUNNING:
        row = probe(row, chosen.timeout if chosen.is_timeout_given else PROBE_TIMEOUT_S)
    if check:
        if row.state != RUNNING:
            note(f"Error: the broker of {row.data_dir} is {row.state}" + (f": {row.reason}" if row.reason else ""))
    else:
        show_row(chosen, row)
        if row.unimplemented_options:
            note(f"Accepted but ignored: {', '.join(row.unimplemented_options)}")
    if row.state != RUNNING:
        raise typer.Exit(exit_codes.TIMED_OUT)


@broker_app.command(epilog=examples("kgctl broker logs -n 20 --follow", "kgctl broker logs -o json"))
@local
def logs(
    ctx: typer.Context,
    data_dir: DataDir = None,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Print new lines as they arrive, until Ctrl-C.")
    ] = False,
    lines: Annotated[int, typer.Option("-n", "--lines", min=0, help="Show the last N lines.", metavar="N")] = 100,
    log_file: Annotated[
        Path | None, typer.Option("--log-file", metavar="FILE", help="[default: the log file of the running broker]")
    ] = None,
) -> None:
    """Show the end of the broker's log.

    With -o json, one object per line.
    """
    render = line_renderer(ctx)
    path = log_file or Path(read_state(directory_of(data_dir)).log_file)
    try:
        stream = path.open(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        raise NotFound(f"there is no log file {path}") from None
    with stream:
        sys.stdout.write("".join(map(render, deque(stream, maxlen=lines))))
        if not follow:
            return
        try:
            follow_log(path, stream, render)
        except KeyboardInterrupt:
            raise typer.Exit(exit_codes.INTERRUPTED) from None


broker_app.command("rescue", epilog=rescue.EPILOG)(rescue.rescue)
