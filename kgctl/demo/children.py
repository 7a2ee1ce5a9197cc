"""The processes of a tour: clients, and kgctl commands. They end when the tour ends, however it ends."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType

from broker.local import broker_environment
from kgctl.client.net.errors import KgctlError
from kgctl.contexts.target import only_cluster

LEAVE_S = 8.0
LINES_OF_A_FAILURE = 20
INDENT = 2
COLUMNS_OF_A_PIPE = 160
PYTHON = [sys.executable, "-P", "-m"]


class DemoFailed(KgctlError):
    """The tour cannot continue; the text says why."""


class Children:
    """Starts clients of the cluster at `bootstrap`; leaving the `with` block stops those that still run."""

    def __init__(self, bootstrap: str, session_timeout_ms: int) -> None:
        self._bootstrap = bootstrap
        self._session_timeout_ms = session_timeout_ms
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        # Shown only if a child fails.
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  closed with this object

    def __enter__(self) -> Children:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for process in self._running.values():
            process.terminate()
        for name in list(self._running):
            self._forget(name)
        self._errors.close()

    def consume(self, name: str, group: str, topics: Sequence[str], *, until_end: bool = False) -> int:
        """Start a consumer process; returns its pid."""
        arguments = ["--group", group, "--client-id", name, "--session-timeout-ms", str(self._session_timeout_ms)]
        arguments += [argument for topic in topics for argument in ("--topic", topic)]
        return self.start(name, "kgctl.demo.consumer", *arguments, *["--until-end"] * until_end)

    def start(self, name: str, module: str, *arguments: str) -> int:
        """Start a client of the cluster in a process of its own; returns its pid."""
        # A new session keeps Ctrl-C away: the demo stops its children itself. The pipe closes when the demo ends.
        self._running[name] = process = subprocess.Popen(
            [*PYTHON, module, "--bootstrap", self._bootstrap, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            env=broker_environment(),
            start_new_session=True,
        )
        return process.pid

    def kill(self, name: str) -> None:
        """Send SIGKILL, as a crash would."""
        self._running[name].kill()
        self._forget(name)

    def has_ended(self, name: str) -> bool:
        """Whether a consumer started with `until_end` has ended. Raises DemoFailed if it failed."""
        if self._running[name].poll() is None:
            return False
        self.check(name)
        self._forget(name)
        return True

    def check(self, *names: str) -> None:
        """Raise DemoFailed if one of these children (default: any) ended with an error."""
        for name in names or tuple(self._running):
            code = self._running[name].poll()
            if code:
                self._errors.seek(0)
                said = self._errors.read().decode("utf-8", "replace").strip().splitlines()
                raise DemoFailed(f"{name} ended with code {code}: {said[-1] if said else 'no error message'}")

    def _forget(self, name: str) -> None:
        process = self._running.pop(name)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(LEAVE_S)
        process.kill()
        process.wait()
        if process.stdin is not None:
            process.stdin.close()


def child_columns() -> int:
    """The width that commands of the tour may use: the terminal's, less the indent."""
    return shutil.get_terminal_size((COLUMNS_OF_A_PIPE, 0)).columns - INDENT


def run_kgctl(arguments: Sequence[str], bootstrap: str, on_line: Callable[[str], None]) -> None:
    """Run `kgctl ARGUMENTS` as a user would and pass on each line as it is printed. Raises DemoFailed if it fails.

    If stdout is a terminal, so is the command's: tables fit and have colours.
    """
    environment = only_cluster(bootstrap, broker_environment()) | {"COLUMNS": str(child_columns())}
    reader, writer = os.openpty() if sys.stdout.isatty() else os.pipe()
    lines: deque[str] = deque(maxlen=LINES_OF_A_FAILURE)
    with (
        open(reader, "rb", buffering=0) as output,
        subprocess.Popen(
            [*PYTHON, "kgctl", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=writer,
            stderr=subprocess.STDOUT,
            env=environment,
        ) as child,
    ):
        os.close(writer)
        try:
            for line in _lines(output):
                lines.append(line)
                on_line(line)
        except BaseException:
            child.terminate()
            raise
    if child.returncode:
        said = "\n".join(lines)
        raise DemoFailed(f"`kgctl {shlex.join(arguments)}` ended with code {child.returncode}: {said}")


def _lines(output: io.FileIO) -> Iterator[str]:
    """The lines of a pipe or pseudo-terminal until its other end is closed."""
    rest = b""
    while True:
        try:
            piece = output.read(1 << 16)
        except OSError as error:  # a pseudo-terminal without a writer
            if error.errno != errno.EIO:
                raise
            piece = b""
        *whole, rest = (rest + (piece or b"")).split(b"\n")
        yield from (line.decode("utf-8", "replace").rstrip("\r") for line in whole)
        if not piece:
            if rest:
                yield rest.decode("utf-8", "replace")
            return
