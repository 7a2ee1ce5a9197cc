"""`kgctl broker`: start, stop and inspect the local broker of a data directory."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import deque
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kgctl import exit_codes
from kgctl.client.net.errors import KgctlError, NotFound, Precondition, TimedOut
from kgctl.commands.broker import rescue
from kgctl.commands.broker.log_lines import follow_log, line_renderer, parse_log_line
from kgctl.commands.broker.security import CONTEXT, keep_context, probe
from kgctl.commands.shared.effects import local, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.settings import settings
from kgctl.model.local_broker import RUNNING, STARTING, STOPPED, LocalBrokerRow
from kgctl.render import TABLES, note
from kgctl.render.sheet import show_sheet

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.local import Holder, Ready

PROBE_TIMEOUT_S = 2.0
PROGRESS_INTERVAL_S = 1.0
POLL_INTERVAL_S = 0.05
IDENTIFY_S = 0.5
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
    directory = _directory(data_dir)
    arguments = ["--data-dir", str(directory), "--durability", durability]
    for flag, value in (("--listen", listen), ("--ready-file", ready_file), ("--log-file", log_file)):
        arguments += [flag, str(value)] if value is not None else []
    for path in config or []:
        arguments += ["--config", str(path)]
    for pair in override or []:
        arguments += ["--override", pair]
    for user in add_scram or []:
        arguments += ["--add-scram", user]
    arguments += ["--insecure-listen"] * insecure_listen + ["--secure"] * secure + ["--accept-loss"] * accept_loss
    if foreground:
        sys.stdout.flush()
        os.execve(sys.executable, [*broker_command(), *arguments], broker_environment())
    try:
        process, ready, warnings = spawn_broker(
            arguments, directory, keep_stdin=False, timeout_s=settings(ctx).timeout, show_progress=_progress_notes()
        )
    except BrokerFailed as failure:
        raise _StartFailed(failure) from None
    # The broker outlives this process: keep Popen from warning about a child that still runs.
    process.returncode = 0
    for line in warnings:
        note(f"Warning: {parse_log_line(line).message}")
    _show_row(ctx, _row_of(ready))
    keep_context(ready, is_default=directory == _directory(None))


def _progress_notes() -> Callable[[str], None]:
    """A function that shows log lines on stderr, at most one per second; a fast start shows none."""
    shown_at = time.monotonic()

    def show_line(line: str) -> None:
        nonlocal shown_at
        if time.monotonic() - shown_at >= PROGRESS_INTERVAL_S:
            shown_at = time.monotonic()
            note(parse_log_line(line).message)

    return show_line


@broker_app.command(epilog=examples("kgctl broker stop", "kgctl broker stop --data-dir ./data"))
@local
def stop(ctx: typer.Context, data_dir: DataDir = None) -> None:
    """Stop the broker cleanly and wait until it has exited. Succeeds if no broker runs.

    Run it where the broker runs: the broker of another container cannot be stopped from outside.
    """
    directory = _directory(data_dir)
    _stop(directory, settings(ctx).timeout)
    _show_row(ctx, _read_state(directory))


@broker_app.command(epilog=examples("kgctl broker status", "kgctl broker status --timeout 10 -o json"))
@shows("local-broker")
@local
def status(ctx: typer.Context, data_dir: DataDir = None) -> None:
    """Show whether the broker answers, and its address.

    The broker has 2 seconds to answer one request; --timeout changes that. Exit code 3 if it does
    not run or does not answer.
    """
    chosen = settings(ctx)
    row = _read_state(_directory(data_dir))
    if row.state == RUNNING:
        row = probe(row, chosen.timeout if chosen.is_timeout_given else PROBE_TIMEOUT_S)
    _show_row(ctx, row)
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
    path = log_file or Path(_read_state(_directory(data_dir)).log_file)
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


class _StartFailed(KgctlError):
    """The broker's own error message, with the matching exit code."""

    def __init__(self, failure: Exception) -> None:
        code = getattr(failure, "code", None)
        super().__init__(str(failure) if code is not None else f"{failure}; --timeout allows more")
        self.exit_code = exit_codes.TIMED_OUT if code is None else code if code > 0 else 1


def _directory(given: Path | None) -> Path:
    from broker.local import default_data_dir

    return Path(os.path.abspath(given)) if given is not None else default_data_dir()


def _read_state(directory: Path) -> LocalBrokerRow:
    """What the files of the data directory say: a broker that is `running` here may still not answer."""
    from broker.local import KILLED, LOG_NAME, find_holder, last_run, running

    ready = running(directory)
    if ready is not None:
        return _row_of(ready)
    holder = find_holder(directory)
    run = last_run(directory) if holder is None else None
    return LocalBrokerRow(
        state=STOPPED if holder is None else STARTING,
        address=None,
        pid=None if holder is None else holder.pid,
        durability=None,
        started=None if run is None else _iso(run.started_ms),
        data_dir=str(directory),
        log_file=str(directory / LOG_NAME),
        ended=None if run is None or run.ended_ms is None else _iso(run.ended_ms),
        reason=None if run is None else run.reason or KILLED,
    )


def _row_of(ready: Ready) -> LocalBrokerRow:
    return LocalBrokerRow(
        state=RUNNING,
        address=ready.address,
        pid=ready.pid,
        durability=ready.durability,
        started=_iso(ready.started_ms),
        data_dir=ready.data_dir,
        security_protocol=ready.security_protocol,
        client_properties=ready.client_properties,
        log_file=ready.log_file,
        unimplemented_options=tuple(ready.unimplemented_options),
        other_listeners=tuple(map(str, ready.listeners[1:])),
    )


def _iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds")


def _show_row(ctx: typer.Context, row: LocalBrokerRow) -> None:
    chosen = settings(ctx)
    if chosen.output in TABLES and not chosen.columns:
        show_sheet(row, "local-broker")
    else:
        chosen.show([row], kind="local-broker")


def _stop(directory: Path, timeout_s: float) -> None:
    from broker.local import find_holder

    holder = _send_stop(directory)
    if holder is None:
        note(f"No broker runs on {directory}.")
        return
    deadline = time.monotonic() + timeout_s
    while find_holder(directory) == holder:
        if time.monotonic() > deadline:
            raise TimedOut(f"the broker (pid {holder.pid}) has not stopped within {timeout_s:g} seconds")
        time.sleep(POLL_INTERVAL_S)


def _send_stop(directory: Path) -> Holder | None:
    """Send SIGTERM to the process that holds the directory, and to no other. None if no process holds it."""
    from broker.local import LOCK_NAME, OtherProcessError, find_holder

    # A broker that is starting or ending may not be found at once.
    deadline = time.monotonic() + IDENTIFY_S
    while True:
        holder = find_holder(directory)
        if holder is None:
            return None
        try:
            if holder.identity is None:
                raise OtherProcessError(f"{directory / LOCK_NAME} does not name the process that holds the directory")
            holder.identity.send_signal(signal.SIGTERM)
        except PermissionError:
            raise Precondition(f"the broker (pid {holder.pid}) belongs to another user") from None
        except (OtherProcessError, ProcessLookupError) as error:
            if time.monotonic() > deadline:
                reason = error if isinstance(error, OtherProcessError) else "there is no process with this pid"
                pid = f" (pid {holder.pid})" if holder.pid is not None else ""
                raise Precondition(
                    f"cannot stop the broker of {directory}{pid}: {reason}; stop it where it was started"
                ) from None
            time.sleep(POLL_INTERVAL_S)
        else:
            return holder
