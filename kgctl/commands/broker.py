"""`kgctl broker`: start, stop and look at the local broker of a data directory."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections import deque
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from kgctl.client.net.errors import KgctlError, NotFound, Precondition, TimedOut
from kgctl.commands.settings import settings
from kgctl.model.local_broker import RUNNING, STARTING, STOPPED, LocalBrokerRow
from kgctl.render import TABLES, note, show
from kgctl.render.sheet import show_sheet

if TYPE_CHECKING:
    from broker.local import Ready

NOT_RUNNING = 3
# What a log line has before its message.
_LOG_LINE = re.compile(r"^\S+Z [A-Z]+ \S+ ")
LOOK_EVERY_S = 0.05
FOLLOW_EVERY_S = 0.2
EXIT_CODES = (
    "Exit codes: those of kgctl; of a start that fails: 2 wrong usage or configuration, 6 another broker holds the data "
    "directory, 11 damage (see --accept-loss), 12 a newer version's data, 13 no space left, 14 too few file "
    "descriptors, 15 the address cannot be listened on, 16 a network file system, 17 the data directory cannot be used, "
    "18 a write or sync failed. With --foreground they are the broker's own, in the same table."
)

broker_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Run the local broker: one per data directory, in the background or as this process.",
)

DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", metavar="DIR", help="Where the broker keeps everything. [default: per user, XDG]"),
]


@broker_app.command(epilog=EXIT_CODES)
def start(
    ctx: typer.Context,
    data_dir: DataDir = None,
    foreground: Annotated[
        bool, typer.Option("--foreground", help="Become the broker: same process, logs on stderr, until a signal.")
    ] = False,
    listen: Annotated[
        str | None,
        typer.Option("--listen", metavar="HOST:PORT", help="Port 0 lets the system choose. [default: 127.0.0.1:9092]"),
    ] = None,
    ready_file: Annotated[
        Path | None, typer.Option("--ready-file", metavar="FILE", help="Also written here once requests are served.")
    ] = None,
    durability: Annotated[
        str,
        typer.Option(
            "--durability",
            metavar="power|process",
            help="What acknowledged records survive: a power cut, or the broker's death only.",
        ),
    ] = "power",
    config: Annotated[
        list[Path] | None, typer.Option("--config", metavar="FILE", help="A .properties file of Kafka's options.")
    ] = None,
    override: Annotated[
        list[str] | None, typer.Option("--override", metavar="KEY=VALUE", help="One option; wins over --config.")
    ] = None,
    insecure_listen: Annotated[
        bool, typer.Option("--insecure-listen", help="Allow an address that other machines reach, unencrypted.")
    ] = False,
    accept_loss: Annotated[
        bool,
        typer.Option(
            "--accept-loss",
            help="Start although acknowledged data are missing or damaged: reads the whole store (--timeout bounds it), "
            "names what is lost, serves the rest.",
        ),
    ] = False,
    log_file: Annotated[
        Path | None, typer.Option("--log-file", metavar="FILE", help="[default: broker.log in the data directory]")
    ] = None,
) -> None:
    """Start the broker and wait until it serves requests."""
    from broker.local import DURABILITIES, BrokerFailed, broker_command, broker_environment, spawn_broker

    if durability not in DURABILITIES:
        raise typer.BadParameter(
            f"{durability!r} is not one of {', '.join(DURABILITIES)}.", ctx=ctx, param_hint="'--durability'"
        )
    directory = _directory(data_dir)
    words = ["--data-dir", str(directory), "--durability", durability]
    for flag, value in (("--listen", listen), ("--ready-file", ready_file), ("--log-file", log_file)):
        words += [flag, str(value)] if value is not None else []
    for path in config or []:
        words += ["--config", str(path)]
    for pair in override or []:
        words += ["--override", pair]
    words += ["--insecure-listen"] * insecure_listen + ["--accept-loss"] * accept_loss
    if foreground:
        sys.stdout.flush()
        os.execve(sys.executable, [*broker_command(), *words], broker_environment())
    try:
        process, ready, said = spawn_broker(words, directory, keep_stdin=False, timeout_s=settings(ctx).timeout)
    except BrokerFailed as failure:
        raise _StartFailed(failure) from None
    # It is meant to outlive us: nobody waits for it.
    process.returncode = 0
    for line in said:
        note(_LOG_LINE.sub("Warning: ", line))
    _show_row(ctx, _row_of(ready))


@broker_app.command()
def stop(ctx: typer.Context, data_dir: DataDir = None) -> None:
    """Stop the broker cleanly and wait until it is gone. None running is fine."""
    from broker.local import holder_pid

    directory = _directory(data_dir)
    pid = holder_pid(directory)
    if pid is None:
        note(f"No broker runs on {directory}.")
    else:
        _stop(pid, directory, settings(ctx).timeout)
    _show_row(ctx, _look(directory))


@broker_app.command()
def status(ctx: typer.Context, data_dir: DataDir = None) -> None:
    """Show whether the broker runs and at which address. Exit code 3 if it does not."""
    row = _look(_directory(data_dir))
    _show_row(ctx, row)
    if row.unimplemented_options:
        note(f"Not implemented, without effect: {', '.join(row.unimplemented_options)}")
    if row.state != RUNNING:
        raise typer.Exit(NOT_RUNNING)


@broker_app.command()
def logs(
    data_dir: DataDir = None,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on as the log grows, until Ctrl-C.")] = False,
    lines: Annotated[int, typer.Option("-n", "--lines", min=0, help="How many of the last lines.")] = 100,
    log_file: Annotated[
        Path | None, typer.Option("--log-file", metavar="FILE", help="[default: the running broker's]")
    ] = None,
) -> None:
    """Show the end of the broker's log."""
    path = log_file or Path(_look(_directory(data_dir)).log_file)
    try:
        stream = path.open(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        raise NotFound(f"there is no log file {path}") from None
    with stream:
        sys.stdout.write("".join(deque(stream, maxlen=lines)))
        if not follow:
            return
        try:
            _follow(path, stream)
        except KeyboardInterrupt:
            raise typer.Exit(130) from None


class _StartFailed(KgctlError):
    """The broker's own words, with the exit code that fits them here."""

    def __init__(self, failure: Exception) -> None:
        code = getattr(failure, "code", None)
        super().__init__(str(failure) if code is not None else f"{failure}; --timeout allows more")
        self.exit_code = TimedOut.exit_code if code is None else code if code > 0 else 1


def _directory(given: Path | None) -> Path:
    from broker.local import default_data_dir

    return Path(os.path.abspath(given)) if given is not None else default_data_dir()


def _look(directory: Path) -> LocalBrokerRow:
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
        show([row], output, kind="local-broker", row_type=LocalBrokerRow)


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
        time.sleep(LOOK_EVERY_S)


def _follow(path: Path, stream: IO[str]) -> None:
    """Print what is added, also to the file that takes this one's place when it is rotated."""
    current = stream
    try:
        while True:
            for line in current:
                sys.stdout.write(line)
            sys.stdout.flush()
            time.sleep(FOLLOW_EVERY_S)
            if _was_replaced(path, current):
                for line in current:
                    sys.stdout.write(line)
                fresh = path.open(encoding="utf-8", errors="replace")
                if current is not stream:
                    current.close()
                current = fresh
    finally:
        if current is not stream:
            current.close()


def _was_replaced(path: Path, stream: IO[str]) -> bool:
    try:
        return path.stat().st_ino != os.fstat(stream.fileno()).st_ino
    except FileNotFoundError:
        return False
