"""Changes tables in child processes that die; see dying.py."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kgctl.pipelines.tables.dying import DIED

NEVER = 10**9


class Writers:
    def __init__(self, program: subprocess.Popen[str]) -> None:
        self._program = program

    def run(self, folder: Path, nth: int, action: str, files: list[Path] | None = None, variants: str = "") -> int:
        """The exit code of a writer that dies before its Nth change of the file system, unless it finishes before."""
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        line = json.dumps([str(folder), nth, action, [*map(str, files or [])], variants])
        print(line, file=self._program.stdin, flush=True)
        ended = int(self._program.stdout.readline())
        assert ended in (0, DIED)
        return ended


@contextmanager
def start_writers() -> Iterator[Writers]:
    command = [sys.executable, "-m", "tests.kgctl.pipelines.tables.dying"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        yield Writers(program)
