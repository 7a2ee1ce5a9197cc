"""A real terminal for a program under test: tmux, with a size, keys, and a screen to read."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import pytest

NO_TMUX = "tmux is not installed"
POLL_S = 0.05


class Terminal:
    """A tmux server with one window. The screen stays readable after the program has ended."""

    def __init__(self, command: Sequence[str], columns: int, lines: int, environment: Mapping[str, str]) -> None:
        self._socket = f"kgctl-{uuid.uuid4().hex}"
        self._directory = tempfile.mkdtemp(prefix="kgctl-tmux-")
        env = [f"{name}={value}" for name, value in environment.items()]
        line = shlex.join(["env", *env, *command]) + '; echo "exit=$?"'
        size = ["-x", str(columns), "-y", str(lines)]
        self._tmux("-f", "/dev/null", "new-session", "-d", *size, f"{line}; exec cat")

    def press(self, *keys: str) -> None:
        """Press keys by their tmux names (Enter, Escape, C-c), or type a text."""
        self._tmux("send-keys", *keys)

    def screen(self) -> str:
        return self._tmux("capture-pane", "-p")

    def screen_with_colours(self) -> str:
        return self._tmux("capture-pane", "-p", "-e")

    def wait_for(self, condition: Callable[[str], object], what: str, within_s: float = 30.0) -> str:
        """The first screen for which the condition holds; AssertionError with the last screen on a timeout."""
        deadline = time.monotonic() + within_s
        while not condition(screen := self.screen()):
            assert time.monotonic() < deadline, f"timed out waiting for {what}\n{screen}"
            time.sleep(POLL_S)
        return screen

    def resize(self, columns: int, lines: int) -> None:
        self._tmux("resize-window", "-x", str(columns), "-y", str(lines))

    def terminate(self) -> None:
        """Send SIGTERM to the program."""
        shell = self._tmux("display-message", "-p", "#{pane_pid}").strip()
        found = subprocess.run(["pgrep", "-P", shell], capture_output=True, text=True, check=True)
        os.kill(int(found.stdout.split()[0]), signal.SIGTERM)

    def close(self) -> None:
        self._tmux("kill-server")
        shutil.rmtree(self._directory, ignore_errors=True)

    def _tmux(self, *arguments: str) -> str:
        done = subprocess.run(
            ["tmux", "-L", self._socket, *arguments],
            capture_output=True,
            text=True,
            check=True,
            timeout=20,
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "TMUX_TMPDIR": self._directory, "LC_ALL": "C.UTF-8"},
        )
        return done.stdout


@contextmanager
def terminal(
    command: Sequence[str], columns: int = 80, lines: int = 24, environment: Mapping[str, str] | None = None
) -> Iterator[Terminal]:
    """Skip the test if tmux is not installed."""
    if shutil.which("tmux") is None:
        pytest.skip(NO_TMUX)
    running = Terminal(command, columns, lines, environment or {})
    try:
        yield running
    finally:
        running.close()
