"""A terminal that a program runs in, as a person has it: tmux, with a size, keys and a screen to read."""

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

NO_TMUX = "the test reads the screen of a tmux, and there is none on this machine"
LOOK_EVERY_S = 0.05


class Terminal:
    """A tmux server of its own with one window. What the program leaves behind stays on the screen after its end."""

    def __init__(self, command: Sequence[str], columns: int, lines: int, environment: Mapping[str, str]) -> None:
        self._socket = f"kgctl-{uuid.uuid4().hex}"
        self._directory = tempfile.mkdtemp(prefix="kgctl-tmux-")
        env = [f"{name}={value}" for name, value in environment.items()]
        line = shlex.join(["env", *env, *command]) + '; echo "exit=$?"'
        size = ["-x", str(columns), "-y", str(lines)]
        self._tmux("-f", "/dev/null", "new-session", "-d", *size, f"{line}; exec cat")

    def press(self, *keys: str) -> None:
        """Keys in tmux's names (Enter, Escape, C-c); a text is typed."""
        self._tmux("send-keys", *keys)

    def screen(self) -> str:
        return self._tmux("capture-pane", "-p")

    def screen_with_colours(self) -> str:
        return self._tmux("capture-pane", "-p", "-e")

    def wait_for(self, condition: Callable[[str], object], what: str, within_s: float = 30.0) -> str:
        """The first screen that the condition holds for; AssertionError with the last one if there is none in time."""
        deadline = time.monotonic() + within_s
        while not condition(seen := self.screen()):
            assert time.monotonic() < deadline, f"never seen: {what}\n{seen}"
            time.sleep(LOOK_EVERY_S)
        return seen

    def resize(self, columns: int, lines: int) -> None:
        self._tmux("resize-window", "-x", str(columns), "-y", str(lines))

    def terminate(self) -> None:
        """SIGTERM to the program."""
        shell = self._tmux("display-message", "-p", "#{pane_pid}").strip()
        found = subprocess.run(["pgrep", "-P", shell], capture_output=True, text=True, check=True)
        os.kill(int(found.stdout.split()[0]), signal.SIGTERM)

    def close(self) -> None:
        self._tmux("kill-server")
        shutil.rmtree(self._directory, ignore_errors=True)

    def _tmux(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-L", self._socket, *words],
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
    """Skips the test where there is no tmux."""
    if shutil.which("tmux") is None:
        pytest.skip(NO_TMUX)
    running = Terminal(command, columns, lines, environment or {})
    try:
        yield running
    finally:
        running.close()
