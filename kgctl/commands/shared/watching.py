"""--watch: a command again and again, redrawn in place on a terminal, one answer after the other in a pipe."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, TextIO

import typer

from kgctl.client.net.errors import KgctlError
from kgctl.commands.shared.interruption import Interrupted, Interruption
from kgctl.render.table import printable

if TYPE_CHECKING:
    from kgctl.commands.shared.settings import Settings

# Home, without wrapping long lines; the terminal shows the frame at once if it knows synchronized output.
_BEGIN, _END = "\x1b[?2026h\x1b[?7l\x1b[H", "\x1b[J\x1b[?7h\x1b[?2026l"
_HIDE_CURSOR, _SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"


def watch(run: Callable[[], Any], settings: Settings) -> None:
    """Run until Ctrl-C or SIGTERM, which end with exit code 0, as they end watch(1).

    The first round fails as the command alone would. Later ones report a failure and try again.
    """
    assert settings.watch is not None
    rounds = _Screen(settings) if sys.stdout.isatty() else _Stream(settings)
    with Interruption() as interruption, settings.kept_connection(), rounds:
        try:
            while True:
                with interruption.may_interrupt():
                    rounds.play(run)
                    time.sleep(settings.watch)
        except Interrupted:
            return


class _Answer:
    """What one round wrote, and the failure that ended it."""

    def __init__(self) -> None:
        self.stdout, self.stderr = _Capture(sys.stdout), _Capture(sys.stderr)
        self.failure: KgctlError | None = None

    def collect(self, run: Callable[[], Any], settings: Settings) -> None:
        with _replaced(self.stdout, self.stderr):
            try:
                run()
            except KgctlError as error:
                self.failure = error
                settings.drop_connection()
            except typer.Exit:
                pass  # rows with errors: shown, and maybe gone in the next round


class _Stream:
    """Into a pipe or a file: one document per round, notes only when they change."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self._count, self._notes = settings, 0, ""

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def play(self, run: Callable[[], Any]) -> None:
        answer = _Answer()
        answer.collect(run, self._settings)
        if answer.failure is not None and not self._count:
            raise answer.failure
        notes = answer.stderr.getvalue() + (f"Error: {answer.failure}\n" if answer.failure else "")
        if notes != self._notes:
            sys.stderr.write(printable_lines(notes))
            sys.stderr.flush()
        self._notes = notes
        if answer.failure is None:
            sys.stdout.write(self._separator() + answer.stdout.getvalue())
            sys.stdout.flush()
            self._count += 1

    def _separator(self) -> str:
        if self._settings.output in ("json", "jsonl"):
            return ""
        return ("---\n" if self._settings.output == "yaml" else "\n") if self._count else ""


class _Screen:
    """On a terminal: each answer over the last one. An answer stays while the cluster does not give another one."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._title = f"every {settings.watch:g} s: {printable(shlex.join(['kgctl', *sys.argv[1:]]))}"
        self._last: list[str] | None = None
        self._asked = ""
        self._rows = 0

    def __enter__(self) -> _Screen:
        # What is on the screen moves up into the scrollback.
        sys.stdout.write(_HIDE_CURSOR + "\n" * _size().lines)
        return self

    def __exit__(self, *_: object) -> None:
        sys.stdout.write(f"\x1b[{min(self._rows, _size().lines - 1) + 1};1H{_SHOW_CURSOR}")
        sys.stdout.flush()

    def play(self, run: Callable[[], Any]) -> None:
        answer = _Answer()
        answer.collect(run, self._settings)
        if answer.failure is None:
            self._last = (answer.stdout.getvalue() + "\n" + answer.stderr.getvalue()).rstrip("\n").split("\n")
            self._asked = _now()
        elif self._last is None:
            raise answer.failure
        self._draw(answer.failure)

    def _draw(self, failure: KgctlError | None) -> None:
        head = [f"{self._asked}  {self._title}"]
        if failure is not None:
            sentence = f"{_now()}  {printable(str(failure))}. The answer below is of {self._asked}."
            head += textwrap.wrap(sentence, _size().columns - 1)
        lines, height = [*head, "", *(self._last or ())], _size().lines
        if len(lines) > height:
            hidden = len(lines) - height + 1
            lines = [*lines[: height - 1], f"({hidden} more lines do not fit.)"]
        self._rows = len(lines)
        sys.stdout.write(_BEGIN + "\x1b[K\r\n".join(lines) + "\x1b[K" + _END)
        sys.stdout.flush()


class _Capture(io.StringIO):
    """Keeps what is written, and answers for the real stream: whether it is a terminal, and which."""

    def __init__(self, real: TextIO) -> None:
        super().__init__()
        self._real = real

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._real.encoding or "utf-8"

    def isatty(self) -> bool:
        return self._real.isatty()

    def fileno(self) -> int:
        return self._real.fileno()


@contextmanager
def _replaced(stdout: TextIO, stderr: TextIO) -> Iterator[None]:
    old = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = stdout, stderr
    try:
        yield
    finally:
        sys.stdout, sys.stderr = old


def printable_lines(text: str) -> str:
    return "".join(printable(line) + "\n" for line in text.splitlines())


def _now() -> str:
    return datetime.now().strftime("%H:%M:%S")


def _size() -> os.terminal_size:
    found = shutil.get_terminal_size()
    return os.terminal_size((max(20, found.columns), max(4, found.lines)))
