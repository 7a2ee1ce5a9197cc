"""The demo's consumers and commands: processes that end with the demo, whatever ends it."""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType

from broker.local import broker_environment
from kgctl.client.net.errors import KgctlError

GOODBYE_S = 8.0
LINES_OF_A_FAILURE = 20
PYTHON = [sys.executable, "-P", "-m"]


class DemoFailed(KgctlError):
    """The show cannot go on; the text says what happened."""


class Children:
    """Starts consumers of the cluster at `bootstrap`; leaving the `with` block ends those that are left."""

    def __init__(self, bootstrap: str, session_timeout_ms: int) -> None:
        self._bootstrap = bootstrap
        self._session_timeout_ms = session_timeout_ms
        self._consumers: dict[str, subprocess.Popen[bytes]] = {}
        # What a consumer complains about is only of interest when it ends before its time.
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115  closed with this object

    def __enter__(self) -> Children:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for process in self._consumers.values():
            process.terminate()
        for name in list(self._consumers):
            self._forget(name)
        self._complaints.close()

    def consume(self, name: str, group: str, topics: Sequence[str], *, until_end: bool = False) -> int:
        """Start a consumer in a process of its own; its pid."""
        command = [*PYTHON, "kgctl.demo.consumer", "--bootstrap", self._bootstrap, "--group", group]
        command += ["--client-id", name, "--session-timeout-ms", str(self._session_timeout_ms)]
        command += [word for topic in topics for word in ("--topic", topic)] + ["--until-end"] * until_end
        # A session of its own keeps Ctrl-C away: the demo ends its consumers, in its order. The pipe ends with the demo.
        self._consumers[name] = process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._complaints,
            env=broker_environment(),
            start_new_session=True,
        )
        return process.pid

    def kill(self, name: str) -> None:
        """SIGKILL, as a crash would."""
        self._consumers[name].kill()
        self._forget(name)

    def has_ended(self, name: str) -> bool:
        """Whether a consumer that reads until the end is done."""
        if self._consumers[name].poll() is None:
            return False
        self.check(name)
        self._forget(name)
        return True

    def check(self, *names: str) -> None:
        """Raises DemoFailed if one of these consumers, or of all if none is named, ended with an error."""
        for name in names or tuple(self._consumers):
            code = self._consumers[name].poll()
            if code:
                self._complaints.seek(0)
                said = self._complaints.read().decode("utf-8", "replace").strip().splitlines()
                raise DemoFailed(f"consumer {name} ended with code {code}: {said[-1] if said else 'it said nothing'}")

    def _forget(self, name: str) -> None:
        process = self._consumers.pop(name)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GOODBYE_S)
        process.kill()
        process.wait()
        if process.stdin is not None:
            process.stdin.close()


def run_kgctl(words: Sequence[str], bootstrap: str, tell: Callable[[str], None]) -> None:
    """Run `kgctl WORDS` as a user would, and tell each line when it is printed. Raises DemoFailed if it fails."""
    environment = broker_environment() | {"KGCTL_BOOTSTRAP": bootstrap, "COLUMNS": os.environ.get("COLUMNS", "160")}
    lines: deque[str] = deque(maxlen=LINES_OF_A_FAILURE)
    with subprocess.Popen(
        [*PYTHON, "kgctl", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment,
    ) as child:
        assert child.stdout is not None
        try:
            for line in child.stdout:
                lines.append(line.decode("utf-8", "replace").rstrip("\n"))
                tell(lines[-1])
        except BaseException:
            child.terminate()
            raise
    if child.returncode:
        said = "\n".join(lines)
        raise DemoFailed(f"`kgctl {shlex.join(words)}` ended with code {child.returncode}: {said}")
