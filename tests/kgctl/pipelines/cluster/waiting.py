"""Waits for conditions, and a gate at which a program under test waits until the test opens it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

# Also on a machine with a load average of 10.
PATIENCE_S = 600.0
_POLL_S = 0.01

T = TypeVar("T")


def await_that(condition: Callable[[], T], what: str, within_s: float = PATIENCE_S) -> T:
    """The result of the condition as soon as it is true; AssertionError with `what` after the time."""
    deadline = time.monotonic() + within_s
    while not (found := condition()):
        assert time.monotonic() < deadline, f"after {within_s:g} s: {what}"
        time.sleep(_POLL_S)
    return found


class Gate:
    """A folder: each process that waits at the gate writes a file with its id; a file `open` lets all of them continue."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def wait(self, name: str) -> None:
        """Wait until the gate is open. Called in the program under test."""
        draft = self.folder / f".{name}"
        draft.write_text(str(os.getpid()))
        draft.rename(self.folder / f"{name}.here")
        await_that((self.folder / "open").exists, f"the gate {self.folder} was not opened for {name}")

    def arrived(self) -> dict[str, int]:
        """Name and process id of all that came to the gate, even if they have continued."""
        return {path.stem: int(path.read_text()) for path in sorted(self.folder.glob("*.here"))}

    def open(self) -> None:
        (self.folder / "open").touch()
