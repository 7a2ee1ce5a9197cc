"""What a client process was told, written down at once: one JSON line per event, so that the judge can read along."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Journal:
    """Appends lines; each call is one write, so a reader never sees half of what belongs together for long."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(self, *events: tuple[Any, ...]) -> None:
        if events:
            os.write(self._file, "".join(json.dumps(event) + "\n" for event in events).encode())


class Tail:
    """Reads a journal that grows: `new` gives the whole lines that came since the last call."""

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
    """Set when standard input ends: the sign to stop, which comes too if the run that started this process dies."""
    ended = threading.Event()

    def wait() -> None:
        # The raw file: a buffered one would be locked when the interpreter ends.
        while os.read(sys.stdin.fileno(), 1024):
            pass
        ended.set()

    threading.Thread(target=wait, daemon=True).start()
    return ended
