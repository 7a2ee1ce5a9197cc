"""`kgctl broker`: start, stop and inspect the local broker of a data directory."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from kgctl import exit_codes
from kgctl.client.net.errors import KgctlError, NotFound, Precondition, TimedOut
from kgctl.commands.help import examples
from kgctl.commands.settings import settings
from kgctl.model.local_broker import RUNNING, STARTING, STOPPED, UNRESPONSIVE, LocalBrokerRow, LogLineRow
from kgctl.render import TABLES, note, show
from kgctl.render.sheet import show_sheet

if TYPE_CHECKING:
    from broker.local import Ready

LOG_LINE = re.compile(r"(?P<time>\S+Z) (?P<level>[A-Z]+) (?P<logger>\S+) (?P<message>.*)", re.DOTALL)
PROBE_TIMEOUT_S = 2.0
POLL_INTERVAL_S = 0.05
FOLLOW_INTERVAL_S = 0.2
EXIT_CODES = (
    "Exit codes of a failed start, in addition to those of kgctl: 2 wrong usage or configuration, 6 another broker holds the "
    "data directory, 11 damaged data (see --accept-loss), 12 data of a newer version, 13 no space left, 14 too few file "
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
        "kgctl broker start --listen 127.0.0.1:0 --data-dir ./data",
        "kgctl broker start --override num.partitions=3 --foreground",
    )
)
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
            "--ready-file", metavar="FILE", help="Also write the ready file here, once the broker serves requests."
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
        typer.Option("--insecure-listen", help="Allow an address that other machines can reach, without encryption."),
    ] = False,
    accept_loss: Annotated[
        bool,
        typer.Option(
            "--accept-loss",
            help="Start even if acknowledged data is missing or damaged: read the whole store (bounded by --timeout), "
            "report what is lost, and serve the rest.",
        ),
    ] = False,
    log_file: Annotated[
        Path | None,
        typer.Option("--log-file", metavar="FILE", help="Where to log. [default: broker.log in the data directory]"),
    ] = None,
) -> None:
    """Start the broker and wait until it serves requests."""
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
    arguments += ["--insecure-listen"] * insecure_listen + ["--accept-loss"] * accept_loss
    if foreground:
        sys.stdout.flush()
        os.execve(sys.executable, [*broker_command(), *arguments], broker_environment())
    try:
        process, ready, warnings = spawn_broker(arguments, directory, keep_stdin=False, timeout_s=settings(ctx).timeout)
    except BrokerFailed as failure:
        raise _StartFailed(failure) from None
    # The broker outlives this process: keep Popen from warning about a child that still runs.
    process.returncode = 0
    for line in warnings:
        note(f"Warning: {_parse_log_line(line).message}")
    _show_row(ctx, _row_of(ready))


@broker_app.command(epilog=examples("kgctl broker stop", "kgctl broker stop --data-dir ./data"))
def stop(ctx: typer.Context, data_dir: DataDir = None) -> None:
    """Stop the broker cleanly and wait until it has exited. Succeeds if no broker runs."""
    from broker.local import holder_pid

    directory = _directory(data_dir)
    pid = holder_pid(directory)
    if pid is None:
        note(f"No broker runs on {directory}.")
    else:
        _stop(pid, directory, settings(ctx).timeout)
    _show_row(ctx, _read_state(directory))


@broker_app.command(epilog=examples("kgctl broker status", "kgctl broker status --timeout 10 -o json"))
def status(ctx: typer.Context, data_dir: DataDir = None) -> None:
    """Show whether the broker answers, and its address.

    The broker has 2 seconds to answer one request; --timeout changes that. Exit code 3 if it does
    not run or does not answer.
    """
    chosen = settings(ctx)
    row = _read_state(_directory(data_dir))
    if row.state == RUNNING:
        row = _probe(row, chosen.timeout if chosen.is_timeout_given else PROBE_TIMEOUT_S)
    _show_row(ctx, row)
    if row.unimplemented_options:
        note(f"Accepted but ignored: {', '.join(row.unimplemented_options)}")
    if row.state != RUNNING:
        raise typer.Exit(exit_codes.TIMED_OUT)


@broker_app.command(epilog=examples("kgctl broker logs -n 20 --follow", "kgctl broker logs -o json"))
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
    render = _line_renderer(ctx)
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
            _follow(path, stream, render)
        except KeyboardInterrupt:
            raise typer.Exit(exit_codes.INTERRUPTED) from None


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
    from broker.local import KILLED, LOG_NAME, holder_pid, last_run, running

    ready = running(directory)
    if ready is not None:
        return _row_of(ready)
    pid = holder_pid(directory)
    run = last_run(directory) if pid is None else None
    return LocalBrokerRow(
        state=STOPPED if pid is None else STARTING,
        address=None,
        pid=pid,
        durability=None,
        started=None if run is None else _iso(run.started_ms),
        data_dir=str(directory),
        log_file=str(directory / LOG_NAME),
        ended=None if run is None or run.ended_ms is None else _iso(run.ended_ms),
        reason=None if run is None else run.reason or KILLED,
    )


def _probe(row: LocalBrokerRow, timeout_s: float) -> LocalBrokerRow:
    """The row of a running broker, or UNRESPONSIVE with the reason if it does not answer ApiVersions in time."""
    from broker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
    from kgctl.client.net.bootstrap import parse
    from kgctl.client.net.connector import ConnectionSettings, Connector

    assert row.address is not None
    deadline = time.monotonic() + timeout_s
    bootstrap = parse(row.address)
    try:
        connection = Connector(ConnectionSettings(bootstrap)).connect(bootstrap[0], deadline)
        try:
            connection.send(ApiVersionsRequest(), 0, ApiVersionsResponse, deadline)
            connection.receive(deadline)
        finally:
            connection.close()
    except KgctlError as error:
        return replace(row, state=UNRESPONSIVE, reason=str(error))
    return row


def _row_of(ready: Ready) -> LocalBrokerRow:
    return LocalBrokerRow(
        state=RUNNING,
        address=ready.address,
        pid=ready.pid,
        durability=ready.durability,
        started=_iso(ready.started_ms),
        data_dir=ready.data_dir,
        log_file=ready.log_file,
        unimplemented_options=tuple(ready.unimplemented_options),
    )


def _iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds")


def _show_row(ctx: typer.Context, row: LocalBrokerRow) -> None:
    output = settings(ctx).output
    if output in TABLES:
        show_sheet(row, "local-broker")
    else:
        show([row], output, kind="local-broker")


def _stop(pid: int, directory: Path, timeout_s: float) -> None:
    from broker.local import holder_pid

    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return
    except PermissionError:
        raise Precondition(f"the broker (pid {pid}) belongs to another user") from None
    deadline = time.monotonic() + timeout_s
    while holder_pid(directory) == pid:
        if time.monotonic() > deadline:
            raise TimedOut(f"the broker (pid {pid}) has not stopped within {timeout_s:g} seconds")
        time.sleep(POLL_INTERVAL_S)


def _line_renderer(ctx: typer.Context) -> Callable[[str], str]:
    """How `logs` prints a line in the chosen output format."""
    output = settings(ctx).output
    if output in TABLES:
        return str
    if output == "json":
        return lambda line: json.dumps(asdict(_parse_log_line(line))) + "\n"
    raise typer.BadParameter(
        f"{output!r} is not available for log lines; use table (plain lines) or json (one object per line).",
        ctx=ctx,
        param_hint="'-o'",
    )


def _parse_log_line(line: str) -> LogLineRow:
    text = line.rstrip("\n")
    found = LOG_LINE.fullmatch(text)
    return LogLineRow(**found.groupdict()) if found else LogLineRow(None, None, None, text)


def _follow(path: Path, stream: IO[str], render: Callable[[str], str]) -> None:
    """Print new lines as they arrive. After a rotation, continue with the file that replaced this one."""
    current = stream
    partial = ""

    def print_new_lines() -> None:
        nonlocal partial
        for chunk in current:
            partial += chunk
            if partial.endswith("\n"):
                sys.stdout.write(render(partial))
                partial = ""

    try:
        while True:
            print_new_lines()
            sys.stdout.flush()
            time.sleep(FOLLOW_INTERVAL_S)
            if _was_replaced(path, current):
                print_new_lines()
                new = path.open(encoding="utf-8", errors="replace")
                if current is not stream:
                    current.close()
                current = new
    finally:
        if current is not stream:
            current.close()


def _was_replaced(path: Path, stream: IO[str]) -> bool:
    try:
        return path.stat().st_ino != os.fstat(stream.fileno()).st_ino
    except FileNotFoundError:
        return False
