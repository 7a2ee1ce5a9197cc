"""`kgctl broker`: start, stop and look at the local broker of a data directory."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import deque
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from kgctl.client.errors import KgctlError, NotFound, Precondition, TimedOut
from kgctl.commands.settings import settings
from kgctl.model.local_broker import RUNNING, STARTING, STOPPED, LocalBrokerRow
from kgctl.render import note, show

if TYPE_CHECKING:
    from broker.local import Ready

NOT_RUNNING = 3
LOOK_EVERY_S = 0.05
FOLLOW_EVERY_S = 0.2
# Exit codes of `python -m broker` that say more than "it failed".
_WRONG_CONFIGURATION, _HELD = 3, 4

broker_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Run the local broker: one per data directory, in the background or as this process.",
)

DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", metavar="DIR", help="Where the broker keeps everything. [default: per user, XDG]"),
]


@broker_app.command()
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
        bool, typer.Option("--accept-loss", help="Start although acknowledged data are missing.")
    ] = False,
    log_file: Annotated[
        Path | None, typer.Option("--log-file", metavar="FILE", help="[default: broker.log in the data directory]")
    ] = None,
) -> None:
    """Start the broker and wait until it serves requests."""
    from broker.local import BrokerFailed, broker_command, broker_environment, spawn_broker

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
        process, ready, _ = spawn_broker(words, directory, keep_stdin=False, timeout_s=settings(ctx).timeout)
    except BrokerFailed as failure:
        raise _StartFailed(failure) from None
    # It is meant to outlive us: nobody waits for it.
    process.returncode = 0
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
        if code is None:
            self.exit_code = TimedOut.exit_code
        elif code in (2, _WRONG_CONFIGURATION):
            self.exit_code = 2
        elif code == _HELD:
            self.exit_code = Precondition.exit_code


def _directory(given: Path | None) -> Path:
    from broker.local import default_data_dir

    return Path(os.path.abspath(given)) if given is not None else default_data_dir()


def _look(directory: Path) -> LocalBrokerRow:
    from broker.local import LOG_NAME, holder_pid, running

    ready = running(directory)
    if ready is not None:
        return _row_of(ready)
    pid = holder_pid(directory)
    return LocalBrokerRow(
        state=STOPPED if pid is None else STARTING,
        address=None,
        pid=pid,
        durability=None,
        started=None,
        data_dir=str(directory),
        log_file=str(directory / LOG_NAME),
    )


def _row_of(ready: Ready) -> LocalBrokerRow:
    return LocalBrokerRow(
        state=RUNNING,
        address=ready.address,
        pid=ready.pid,
        durability=ready.durability,
        started=datetime.fromtimestamp(ready.started_ms / 1000, UTC).isoformat(timespec="seconds"),
        data_dir=ready.data_dir,
        log_file=ready.log_file,
        unimplemented_options=tuple(ready.unimplemented_options),
    )


def _show_row(ctx: typer.Context, row: LocalBrokerRow) -> None:
    show([row], settings(ctx).output, kind="local-broker", row_type=LocalBrokerRow)
    if row.unimplemented_options:
        note(f"Not implemented, without effect: {', '.join(row.unimplemented_options)}")


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
