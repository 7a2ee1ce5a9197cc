"""Journals of client processes: one JSON line per event, written immediately, so that the test can follow."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Journal:
    """Appends lines. Each call is a single write, which keeps related events together."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(self, *events: tuple[Any, ...]) -> None:
        if events:
            os.write(self._file, "".join(json.dumps(event) + "\n" for event in events).encode())


class Tail:
    """Reads a growing journal: `new` yields the complete lines since the last call."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._position = 0

    def new(self) -> Iterator[list[Any]]:
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(self._position)
            content = file.read()
        whole = content[: content.rfind(b"\n") + 1]
        self._position += len(whole)
        for line in whole.splitlines():
            yield json.loads(line)


def end_of_input() -> threading.Event:
    """An event that is set when standard input ends: the request to stop, also if the parent process dies."""
    ended = threading.Event()

    def wait() -> None:
        # The raw file: the lock of a buffered one would block the exit of the interpreter.
        while os.read(sys.stdin.fileno(), 1024):
            pass
        ended.set()

    threading.Thread(target=wait, daemon=True).start()
    return ended
