"""Broker processes that start in milliseconds: children of a nursery, each with its own data directory."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from broker.data_directory import READY_NAME
from broker.local import broker_environment
from broker.ready_file import read_ready
from tests.harness.wire_client import WireClient

PATIENCE_S = 30.0
POLL_INTERVAL_S = 0.002
MEMORY = "/dev/shm"
MEMORY_BYTES, MEMORY_FILES = 1 << 30, 100_000


@contextlib.contextmanager
def in_memory(prefix: str = "kgctl-") -> Iterator[Path]:
    """A temporary directory, on a file system in memory if there is one: syncs then cost nothing."""
    with tempfile.TemporaryDirectory(prefix=prefix, dir=memory()) as path:
        yield Path(path)


def memory() -> str | None:
    """The directory of a file system in memory; None if there is none with enough room. In a container it may be small."""
    if not os.access(MEMORY, os.W_OK):
        return None
    found = os.statvfs(MEMORY)
    has_room = found.f_bavail * found.f_frsize >= MEMORY_BYTES and found.f_favail >= MEMORY_FILES
    return MEMORY if has_room else None


class Ended(AssertionError):
    """The broker exited although it should serve."""


class Nursery:
    """The process that forks brokers. They end with it."""

    def __init__(self) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-P", "-m", "tests.durability.nursery"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=broker_environment(),
            start_new_session=True,
        )
        self._waiting = b""
        self._started: list[int] = []
        self.codes: dict[int, int] = {}
        self.starts = 0

    def __enter__(self) -> Nursery:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.close()
        self._child.wait(PATIENCE_S)
        self._child.stdout.close()

    def spawn(self, data_dir: Path, *arguments: str, fault: str | None = None, killed_at: int | None = None) -> Process:
        """Start a broker with a planted fault, or one that is killed at its n-th change of a file."""
        errors = data_dir.with_name(f"{data_dir.name}-{self.starts}.stderr")
        given = ["--data-dir", str(data_dir), "--listen", "127.0.0.1:0", *arguments]
        asked: dict[str, Any] = {"arguments": given, "stderr": str(errors), "fault": fault, "killed_at": killed_at}
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps(asked).encode() + b"\n")
        self._child.stdin.flush()
        self.starts += 1
        deadline = time.monotonic() + PATIENCE_S
        while not self._started:
            assert time.monotonic() < deadline, "the nursery does not answer"
            self.listen(0.1)
        return Process(self, self._started.pop(), data_dir, errors)

    def listen(self, seconds: float) -> None:
        """Take note of what the nursery reports within some seconds."""
        assert self._child.stdout is not None
        fd = self._child.stdout.fileno()
        if not select.select([fd], [], [], seconds)[0]:
            return
        read = os.read(fd, 1 << 16)
        assert read, "the nursery ended"
        *lines, self._waiting = (self._waiting + read).split(b"\n")
        for line in lines:
            said = json.loads(line)
            if "started" in said:
                self._started.append(said["started"])
            else:
                self.codes[said["ended"]] = said["code"]


class Process:
    """One run of a broker."""

    def __init__(self, nursery: Nursery, pid: int, data_dir: Path, errors: Path) -> None:
        self._nursery = nursery
        self.pid, self.data_dir = pid, data_dir
        self._errors = errors
        self._spawned_at = time.monotonic()
        self.address = ("127.0.0.1", 0)

    @property
    def code(self) -> int | None:
        """Its exit code; None as long as it runs."""
        self._nursery.listen(0)
        return self._nursery.codes.get(self.pid)

    @property
    def stderr(self) -> str:
        if not self._errors.exists():
            return ""
        return self._errors.read_text(errors="replace")

    def error_lines(self) -> list[str]:
        """What it wrote to stderr when it ended, without log lines."""
        return [line for line in self.stderr.splitlines() if not line[:4].isdigit()]

    def starts(self, within_s: float = PATIENCE_S) -> bool:
        """Wait until it serves (true) or has exited (false)."""
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline:
            ready = read_ready(self.data_dir / READY_NAME)
            if ready is not None and ready.pid == self.pid:
                host, _, port = ready.address.rpartition(":")
                self.address = (host, int(port))
                return True
            if self.code is not None:
                return False
            self._nursery.listen(POLL_INTERVAL_S)
        self.kill()
        raise Ended(f"neither serving nor ended within {within_s:g} s")

    def ready(self) -> Process:
        if not self.starts():
            raise Ended(f"the broker exited with {self.code}: {self.stderr[-1500:]}")
        return self

    def client(self) -> WireClient:
        return WireClient(self.address)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        if self.code is None:
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.kill(self.pid, number)
        self.wait()

    def wait(self, within_s: float = PATIENCE_S, *, kill: bool = True) -> int:
        """Its exit code, once it has ended."""
        deadline = time.monotonic() + within_s
        while (code := self.code) is None:
            if time.monotonic() >= deadline:
                if kill:
                    os.kill(self.pid, signal.SIGKILL)
                raise Ended(f"still running {within_s:g} s after it should have ended")
            self._nursery.listen(0.01)
        return code
