"""Programs under test: start them, read their JSON lines, kill them with all their descendants."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.kgctl.pipelines.cluster.copying import Copy
from tests.kgctl.pipelines.cluster.families import below, kill_all, kill_family
from tests.kgctl.pipelines.cluster.waiting import PATIENCE_S, await_that

Line = dict[str, Any]


class Program:
    """Collects the JSON lines on stdout; stderr goes to a file."""

    def __init__(self, command: list[str], stderr: Path, environ: dict[str, str]) -> None:
        self.stderr = stderr
        with stderr.open("ab") as noise:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=noise, env=environ
            )
        self.lines: list[Line] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def await_line(self, holds: Callable[[Line], bool]) -> Line:
        """The first line for which `holds`; AssertionError if the program ends before, or takes too long."""
        found = self.await_that(lambda: [line for line in self.lines if holds(line)], "no such line")
        return found[0]

    def await_that(self, condition: Callable[[], Any], what: str) -> Any:
        def check() -> Any:
            ended = self.process.poll() is not None
            found = condition()
            assert found or not ended, f"{what}: the program ended with {self.process.returncode}: {self.stderr_tail()}"
            return found

        return await_that(check, what)

    def await_end(self, within_s: float = PATIENCE_S) -> int:
        code = self.process.wait(within_s)
        self._reader.join(within_s)
        return code

    def kill(self) -> None:
        """Kill the program, its JVM and its Python workers at once, as if the machine had failed."""
        kill_family(self.process.pid)
        self.process.wait()
        self._reader.join()

    def kill_at(self, ready: Callable[[], Any], moment: Callable[[], Any], what: str) -> None:
        """Kill the program at exactly this moment; after `ready` it starts no more processes."""
        self.await_that(ready, f"not ready for {what}")
        family = [self.process.pid, *below(self.process.pid)]
        self.await_that(moment, what)
        kill_all(family)
        self.kill()

    def stderr_tail(self) -> str:
        return self.stderr.read_text(errors="replace")[-4000:]

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                with contextlib.suppress(ValueError):
                    self.lines.append(json.loads(line))


@contextlib.contextmanager
def running(command: list[str], stderr: Path, scratch: Path, **environ: str) -> Iterator[Program]:
    """A running program, killed at the end. Its temporary files go to `scratch`."""
    environ = {**os.environ, "TMPDIR": str(scratch), **environ}
    program = Program([sys.executable, "-m", *command], stderr, environ)
    try:
        yield program
    finally:
        program.kill()


def copying(copy: Copy, scratch: Path, **environ: str) -> contextlib.AbstractContextManager[Program]:
    Path(copy.out).mkdir(parents=True, exist_ok=True)
    command = ["tests.kgctl.pipelines.cluster.copying", copy.to_json()]
    return running(command, Path(copy.out) / "stderr.log", scratch, **environ)


def copied_to_the_end(copy: Copy, scratch: Path, **environ: str) -> list[Line]:
    """All lines of a run without kills."""
    with copying(copy, scratch, **environ) as program:
        assert program.await_end() == 0, program.stderr_tail()
        return program.lines
