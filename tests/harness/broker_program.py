"""Run `python -m broker` as a user or a supervisor would, and wait for conditions."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from broker.local import broker_command, broker_environment
from broker.ready_file import Ready, read_ready

PATIENCE_S = 30.0


def eventually(holds: Callable[[], Any], what: str) -> Any:
    """Poll `holds` until it returns a true value, and return that."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        found = holds()
        if found:
            return found
        assert time.monotonic() < deadline, f"timed out waiting for {what}"
        time.sleep(0.01)


class Program:
    """One run of the daemon in the foreground."""

    def __init__(self, data_dir: Path, *arguments: str, listen: str | None = "127.0.0.1:0", **options: Any) -> None:
        self.ready_path = data_dir / "ready.json"
        given = ["--data-dir", str(data_dir), *(["--listen", listen] if listen else []), *arguments]
        self.process = subprocess.Popen(
            [*options.pop("before", ()), *broker_command(), *given],
            stdin=options.pop("stdin", subprocess.DEVNULL),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=broker_environment() | options.pop("env", {}),
            **options,
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    def ready(self) -> Ready:
        """Its ready file, once it exists."""

        def read() -> Ready | None:
            if self.process.poll() is not None:
                raise AssertionError(f"ended with {self.process.returncode}: {self.process.communicate()}")
            found = read_ready(self.ready_path)
            # Until this broker removes it, the file may be that of a killed one.
            return found if found is not None and found.pid == self.pid else None

        found = eventually(read, "the ready file")
        assert isinstance(found, Ready)
        return found

    def end(self) -> tuple[int, str]:
        """Its exit code and stderr, once it has ended."""
        stdout, stderr = self.process.communicate(timeout=PATIENCE_S)
        assert stdout == ""
        return self.process.returncode, stderr


@contextlib.contextmanager
def started(data_dir: Path, *arguments: str, **options: Any) -> Iterator[Program]:
    program = Program(data_dir, *arguments, **options)
    try:
        yield program
    finally:
        program.process.kill()
        program.process.communicate()
        if program.process.stdin is not None:
            program.process.stdin.close()


def refused(data_dir: Path, *arguments: str, **options: Any) -> tuple[int, str]:
    """The exit code and the one-line error of a start that fails."""
    with started(data_dir, *arguments, **options) as program:
        code, stderr = program.end()
    lines = stderr.splitlines()
    assert len(lines) == 1, stderr
    assert lines[0].startswith("Error: ")
    return code, lines[0]


def accepts(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()
    except OSError:
        return False
    return True


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z" if stat.exists() else True
    except (OSError, IndexError):
        return False
