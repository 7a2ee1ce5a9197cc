"""LocalBroker: a broker in a child process, for tests and programs; and how any program starts and finds brokers."""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from broker.data_directory import (
    KILLED,
    LOG_NAME,
    READY_NAME,
    Ready,
    Run,
    default_data_dir,
    holder_pid,
    last_run,
    read_ready,
    running,
)

__all__ = [
    "DURABILITIES",
    "KILLED",
    "LOG_NAME",
    "BrokerFailed",
    "LocalBroker",
    "Ready",
    "Run",
    "broker_command",
    "broker_environment",
    "default_data_dir",
    "holder_pid",
    "last_run",
    "running",
    "spawn_broker",
]

DURABILITIES = ("power", "process")
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0


class BrokerFailed(Exception):
    """The broker did not start; `line` is what it said, `code` its exit code (None: it did not answer in time)."""

    def __init__(self, line: str, code: int | None) -> None:
        super().__init__(line)
        self.line = line
        self.code = code


class LocalBroker:
    """A broker of your own in a child process: `with LocalBroker() as kafka: connect(kafka.bootstrap_servers)`.

    config      Kafka's broker options, for example {"num.partitions": 3}
    data_dir    where it keeps everything; by default a temporary directory that is removed at the end
    durability  "process": acknowledged records survive the broker's death; "power": a power cut too, at a sync per round
    listen      HOST:PORT; port 0 lets the system choose once, a restart keeps the port

    It ends with the `with` block, and with this process however that ends.
    """

    def __init__(
        self,
        config: Mapping[str, str | int | float | bool] | None = None,
        data_dir: str | os.PathLike[str] | None = None,
        durability: str = "process",
        listen: str = "127.0.0.1:0",
    ) -> None:
        if durability not in DURABILITIES:
            raise ValueError(f"durability {durability!r} is not one of {', '.join(DURABILITIES)}")
        self._config = dict(config or {})
        self._given_dir = None if data_dir is None else Path(os.path.abspath(data_dir))
        self._durability = durability
        self._listen = listen
        self._ready: Ready | None = None
        # Made at the first start; what it holds goes with this object, and at the end of the program at the latest.
        self._belongings: _Belongings | None = None
        self._release: weakref.finalize[[_Belongings], LocalBroker] | None = None

    def __repr__(self) -> str:
        where = self._given_dir if self._belongings is None else self._belongings.data_dir
        address = "not running" if self._ready is None else self._ready.address
        return f"<LocalBroker {address}, data in {where or 'a temporary directory'}>"

    def __enter__(self) -> LocalBroker:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def bootstrap_servers(self) -> str:
        """ "HOST:PORT", as every client wants it."""
        return self._running().address

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def data_dir(self) -> Path:
        if self._belongings is not None:
            return self._belongings.data_dir
        if self._given_dir is not None:
            return self._given_dir
        raise RuntimeError("the broker has not been started")

    @property
    def log_file(self) -> Path:
        return self.data_dir / LOG_NAME

    def start(self) -> None:
        """Start it and wait until it serves requests. Raises BrokerFailed with the broker's own words."""
        if self._ready is not None:
            raise RuntimeError("the broker has been started already")
        if self._belongings is None:
            self._belongings = _Belongings(self._given_dir)
            self._release = weakref.finalize(self, _Belongings.release, self._belongings)
        data_dir = self._belongings.data_dir
        arguments = ["--data-dir", str(data_dir), "--listen", self._listen, "--durability", self._durability]
        for name, value in self._config.items():
            arguments += ["--override", f"{name}={str(value).lower() if isinstance(value, bool) else value}"]
        arguments += ["--parent", str(os.getpid())] + ["--temporary"] * (self._given_dir is None)
        self._belongings.process, self._ready, _ = spawn_broker(arguments, data_dir, keep_stdin=True)
        self._listen = self._ready.address

    def stop(self) -> None:
        """Stop it cleanly; its data stay until the end of the `with` block."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it (SIGKILL), as a crash would."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Start it again on the same data and port, after a clean stop if it still runs."""
        self.stop()
        self.start()

    def close(self) -> None:
        """Stop it and remove a temporary data directory."""
        self._ready = None
        if self._release is not None:
            self._release()
        self._belongings = self._release = None

    def _running(self) -> Ready:
        if self._ready is None:
            raise RuntimeError("the broker is not running")
        return self._ready

    def _end(self, number: signal.Signals) -> None:
        self._ready = None
        if self._belongings is not None:
            self._belongings.end_process(number)


class _Belongings:
    """The child process and the directory of a LocalBroker; holds no reference to it."""

    def __init__(self, given_dir: Path | None) -> None:
        self.owner_pid = os.getpid()
        self.process: subprocess.Popen[bytes] | None = None
        self.temporary = given_dir is None
        self.data_dir = given_dir or Path(tempfile.mkdtemp(prefix="kgctl-broker-"))

    def end_process(self, number: signal.Signals) -> None:
        process, self.process = self.process, None
        if process is not None:
            _end_process(process, number)

    def release(self) -> None:
        # A fork of the program inherits this object, but owns neither the broker nor its directory.
        if os.getpid() != self.owner_pid:
            return
        self.end_process(signal.SIGTERM)
        if self.temporary:
            shutil.rmtree(self.data_dir, ignore_errors=True)


def _end_process(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    process.send_signal(number)
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdin is not None:
        process.stdin.close()


def spawn_broker(
    arguments: Sequence[str], data_dir: Path, *, keep_stdin: bool, timeout_s: float = START_TIMEOUT_S
) -> tuple[subprocess.Popen[bytes], Ready, list[str]]:
    """Start a broker in a session of its own and wait until it serves: the process, its ready file, its warnings.

    With `keep_stdin` a pipe to its stdin stays open as long as this process lives. Raises BrokerFailed.
    """
    # A session of its own: Ctrl-C reaches the caller alone, which may still need its broker to clean up.
    process = subprocess.Popen(
        [*broker_command(), *arguments, "--background"],
        stdin=subprocess.PIPE if keep_stdin else subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=broker_environment(),
        start_new_session=True,
    )
    try:
        said = _read_until_end(process, time.monotonic() + timeout_s)
        ready = read_ready(data_dir / READY_NAME) if said is not None else None
        if ready is not None and ready.pid == process.pid:
            return process, ready, said.splitlines() if said else []
        if said is None:
            raise BrokerFailed(f"the broker was not ready within {timeout_s:g} seconds", None)
        code = process.wait(STOP_TIMEOUT_S)
        last = said.strip().splitlines()[-1:] or [f"the broker ended with code {code}"]
        raise BrokerFailed(last[0].removeprefix("Error: "), code)
    except BaseException:
        with contextlib.suppress(OSError):
            process.kill()
        process.wait()
        if process.stdin is not None:
            process.stdin.close()
        raise


def _read_until_end(process: subprocess.Popen[bytes], deadline: float) -> str | None:
    """All that the broker says on stderr until it lets go of it, ready or dead; None if that takes too long."""
    assert process.stderr is not None
    said = b""
    with process.stderr, selectors.DefaultSelector() as selector:
        selector.register(process.stderr, selectors.EVENT_READ)
        while selector.select(max(deadline - time.monotonic(), 0)):
            chunk = os.read(process.stderr.fileno(), 65536)
            if not chunk:
                return said.decode("utf-8", "replace")
            said += chunk
    return None


def broker_command() -> list[str]:
    """The beginning of the command line that runs this installation's broker."""
    # -P: a `broker` package in the current directory is not ours.
    return [sys.executable, "-P", "-m", "broker"]


def broker_environment() -> dict[str, str]:
    """This environment, in which the child finds the package that this process has imported."""
    environment = dict(os.environ)
    root = Path(__file__).resolve().parents[1]
    if root.name not in ("site-packages", "dist-packages"):
        known = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = f"{root}{os.pathsep}{known}" if known else str(root)
    return environment
