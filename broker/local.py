"""LocalBroker: a broker in a child process, for tests and programs; and functions to start a broker and find one."""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from broker.data_directory import (
    ADMIN,
    CA_NAME,
    KILLED,
    LOCK_NAME,
    LOG_NAME,
    PASSWORD_NAME,
    READY_NAME,
    SECURITY_NAME,
    Run,
    default_data_dir,
    last_run,
)
from broker.directory_lock import Holder, find_holder, holder_pid, running
from broker.process_identity import OtherProcessError
from broker.ready_file import Ready, read_ready
from broker.secret_names import may_be_secret

if TYPE_CHECKING:
    from broker.fork import ForkedProcess

__all__ = [
    "DURABILITIES",
    "KILLED",
    "LOCK_NAME",
    "LOG_NAME",
    "BrokerFailed",
    "Holder",
    "LocalBroker",
    "OtherProcessError",
    "Ready",
    "Run",
    "await_broker",
    "broker_command",
    "broker_environment",
    "default_data_dir",
    "find_holder",
    "holder_pid",
    "last_run",
    "running",
    "spawn_broker",
]

DURABILITIES = ("power", "process")
SECURITY_PROTOCOLS = ("SASL_SSL", "SASL_PLAINTEXT", "SSL")
# Its lines on stderr are signs of progress, not warnings.
PROGRESS_LOGGER = "broker.progress"
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0


class BrokerFailed(Exception):
    """The broker did not start. `line` is its error message, `code` its exit code (None: it did not start in time)."""

    def __init__(self, line: str, code: int | None) -> None:
        super().__init__(line)
        self.line = line
        self.code = code


class LocalBroker:
    """A broker in a child process: `with LocalBroker() as kafka: connect(kafka.bootstrap_servers)`.

    config      Kafka's broker options, for example {"num.partitions": 3}
    data_dir    the data directory; by default a temporary one, which is removed at the end
    durability  "process": acknowledged records survive a crash of the broker; "power": also a power cut, at one sync per
                flush
    listen      HOST:PORT; port 0 picks a free port, which a restart keeps
    security    "SASL_SSL", "SASL_PLAINTEXT" or "SSL" instead of plaintext: the broker makes its certificate and its user
                `username` with a `password` that it draws; `client_properties` has what a Java client needs

    The broker stops at the end of the `with` block, and when this process ends for any reason.
    """

    def __init__(
        self,
        config: Mapping[str, str | int | float | bool] | None = None,
        data_dir: str | os.PathLike[str] | None = None,
        durability: str = "process",
        listen: str = "127.0.0.1:0",
        security: str | None = None,
    ) -> None:
        if security not in (None, *SECURITY_PROTOCOLS):
            raise ValueError(f"security {security!r} is not one of {', '.join(SECURITY_PROTOCOLS)}")
        if durability not in DURABILITIES:
            raise ValueError(f"durability {durability!r} is not one of {', '.join(DURABILITIES)}")
        self._config = dict(config or {})
        self._given_dir = None if data_dir is None else Path(os.path.abspath(data_dir))
        self._durability = durability
        self._listen = listen
        self._security = security
        self._ready: Ready | None = None
        # Created at the first start; released with this object, at the latest when the program exits.
        self._child: _Child | None = None
        self._release: weakref.finalize[[_Child], LocalBroker] | None = None

    def __repr__(self) -> str:
        where = self._given_dir if self._child is None else self._child.data_dir
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
        """HOST:PORT, as clients expect it."""
        return self._running().address

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def data_dir(self) -> Path:
        if self._child is not None:
            return self._child.data_dir
        if self._given_dir is not None:
            return self._given_dir
        raise RuntimeError("the broker has not been started")

    @property
    def log_file(self) -> Path:
        return self.data_dir / LOG_NAME

    @property
    def username(self) -> str | None:
        """The user of a broker with SASL, who may do everything; None without SASL."""
        return ADMIN if self._uses_sasl else None

    @property
    def password(self) -> str | None:
        """The password of `username`; None without SASL."""
        return (self._security_dir / PASSWORD_NAME).read_text().strip() if self._uses_sasl else None

    @property
    def ca_file(self) -> Path | None:
        """The certificate of the authority that clients of a broker with TLS must trust, as PEM; None without TLS."""
        return self._security_dir / CA_NAME if self._security in ("SASL_SSL", "SSL") else None

    @property
    def client_properties(self) -> dict[str, str]:
        """The configuration of a client that connects as `username`, with the names of Java clients."""
        path = self._running().client_properties
        if path is None:
            return {"bootstrap.servers": self.bootstrap_servers}
        from broker.config.properties import parse_properties

        return parse_properties(Path(path).read_text())

    def start(self) -> None:
        """Start it and wait until it serves requests. Raises BrokerFailed with the broker's error message."""
        if self._ready is not None:
            raise RuntimeError("the broker is already running")
        if self._child is None:
            self._child = _Child(self._given_dir)
            self._release = weakref.finalize(self, _Child.release, self._child)
        data_dir = self._child.data_dir
        arguments = ["--data-dir", str(data_dir), "--listen", self._listen, "--durability", self._durability]
        arguments += ["--secure", self._security] if self._security is not None else []
        config = {
            name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in self._config.items()
        }
        secrets = {name: value for name, value in config.items() if may_be_secret(name)}
        for name in config.keys() - secrets.keys():
            arguments += ["--override", f"{name}={config[name]}"]
        arguments += ["--parent", str(os.getpid())] + ["--temporary"] * (self._given_dir is None)
        with _private_file(secrets) as path:
            arguments += ["--config", path] if path is not None else []
            self._child.process, self._ready, _ = spawn_broker(arguments, data_dir, keep_stdin=True)
        self._listen = self._ready.address

    def stop(self) -> None:
        """Stop it cleanly. Its data remains until the end of the `with` block."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it with SIGKILL, as in a crash."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Stop it cleanly if it runs, and start it again with the same data and port."""
        self.stop()
        self.start()

    def close(self) -> None:
        """Stop it and remove a temporary data directory."""
        self._ready = None
        if self._release is not None:
            self._release()
        self._child = self._release = None

    @property
    def _uses_sasl(self) -> bool:
        return self._security in ("SASL_SSL", "SASL_PLAINTEXT")

    @property
    def _security_dir(self) -> Path:
        return self.data_dir / SECURITY_NAME

    def _running(self) -> Ready:
        if self._ready is None:
            raise RuntimeError("the broker is not running")
        return self._ready

    def _end(self, number: signal.Signals) -> None:
        self._ready = None
        if self._child is not None:
            self._child.end_process(number)


class _Child:
    """The child process and directory of a LocalBroker. It has no reference to the LocalBroker, so that one can be freed."""

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
        # A fork of the program inherits this object but owns neither the broker nor its directory.
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


@contextlib.contextmanager
def _private_file(config: Mapping[str, str]) -> Iterator[str | None]:
    """A .properties file that only this user can read, for the time of a start; None if there is nothing to write.

    Arguments are visible to other users.
    """
    if not config:
        yield None
        return
    with tempfile.NamedTemporaryFile("w", prefix="kgctl-", suffix=".properties") as file:
        for name, value in config.items():
            escaped = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
            # A leading blank would be taken for a separator.
            file.write(f"{name}={chr(92) if escaped[:1].isspace() else ''}{escaped}\n")
        file.flush()
        yield file.name


def spawn_broker(
    arguments: Sequence[str],
    data_dir: Path,
    *,
    keep_stdin: bool,
    timeout_s: float = START_TIMEOUT_S,
    show_progress: Callable[[str], None] | None = None,
) -> tuple[subprocess.Popen[bytes], Ready, list[str]]:
    """Start a broker in a new session and wait until it serves. Returns the process, its ready file and its warnings.

    With `keep_stdin`, a pipe to its stdin stays open while this process lives. Without, the broker outlives this process
    once it serves. The rest is as for `await_broker`.
    """
    # In a new session, Ctrl-C does not reach the broker: the caller may still need it to clean up.
    process = subprocess.Popen(
        [*broker_command(), *arguments, "--background", *([] if keep_stdin else ["--starter"])],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=broker_environment(),
        start_new_session=True,
    )
    found = await_broker(process, data_dir, timeout_s=timeout_s, show_progress=show_progress)
    if not keep_stdin:
        confirm(process)
    return process, *found


def confirm(process: subprocess.Popen[bytes] | ForkedProcess) -> None:
    """Let a broker with --starter outlive this process."""
    assert process.stdin is not None
    # A broker that ended in the meantime is no failure of the start.
    with contextlib.suppress(OSError):
        os.write(process.stdin.fileno(), b"+")
    process.stdin.close()


def await_broker(
    process: subprocess.Popen[bytes] | ForkedProcess,
    data_dir: Path,
    *,
    timeout_s: float = START_TIMEOUT_S,
    show_progress: Callable[[str], None] | None = None,
) -> tuple[Ready, list[str]]:
    """Wait until a broker with --background serves. Returns its ready file and its warnings.

    `timeout_s` bounds the time without a sign of progress: a start that recovers many partitions may take longer.
    `show_progress` gets the log line of each such sign, but not all if they come fast. Raises BrokerFailed, and kills
    the process at any failure.
    """
    try:
        stderr_text = _read_until_end(process, timeout_s, show_progress)
        ready = read_ready(data_dir / READY_NAME) if stderr_text is not None else None
        if ready is not None and ready.pid == process.pid:
            lines = stderr_text.splitlines() if stderr_text else []
            return ready, [line for line in lines if f" {PROGRESS_LOGGER} " not in line]
        if stderr_text is None:
            raise BrokerFailed(f"the broker is not ready and made no progress for {timeout_s:g} seconds", None)
        code = process.wait(STOP_TIMEOUT_S)
        last = stderr_text.strip().splitlines()[-1:] or [f"the broker ended with code {code}"]
        raise BrokerFailed(last[0].removeprefix("Error: "), code)
    except BaseException:
        with contextlib.suppress(OSError):
            process.kill()
        process.wait()
        if process.stdin is not None:
            process.stdin.close()
        raise


def _read_until_end(
    process: subprocess.Popen[bytes] | ForkedProcess, silence_s: float, show_progress: Callable[[str], None] | None
) -> str | None:
    """The broker's stderr up to its end, when the broker is ready or dead; None if it is silent for too long."""
    assert process.stderr is not None
    stderr_text = b""
    with process.stderr, selectors.DefaultSelector() as selector:
        selector.register(process.stderr, selectors.EVENT_READ)
        while selector.select(silence_s):
            chunk = os.read(process.stderr.fileno(), 65536)
            if not chunk:
                return stderr_text.decode("utf-8", "replace")
            stderr_text += chunk
            end = stderr_text.rfind(b"\n")
            line = (
                stderr_text[stderr_text.rfind(b"\n", 0, max(end, 0)) + 1 : end + 1].decode("utf-8", "replace").rstrip()
            )
            if show_progress is not None and f" {PROGRESS_LOGGER} " in line:
                show_progress(line)
    return None


def broker_command() -> list[str]:
    """The command that runs the broker of this installation, without arguments."""
    # -P: do not import a `broker` package from the current directory.
    return [sys.executable, "-P", "-m", "broker"]


def broker_environment() -> dict[str, str]:
    """The environment for a child that imports the same `broker` package as this process."""
    environment = dict(os.environ)
    root = Path(__file__).resolve().parents[1]
    if root.name not in ("site-packages", "dist-packages"):
        known = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = f"{root}{os.pathsep}{known}" if known else str(root)
    return environment
