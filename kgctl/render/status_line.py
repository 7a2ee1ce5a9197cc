"""One line on a terminal that is rewritten while a command waits."""

from __future__ import annotations

import shutil
from types import TracebackType
from typing import TextIO

from kgctl.render.table import printable


class StatusLine:
    """Writes nothing if the stream is not a terminal; the `with` erases the line at its end."""

    def __init__(self, stream: TextIO) -> None:
        self._stream, self._is_live, self._is_open = stream, stream.isatty(), False

    def __enter__(self) -> StatusLine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.clear()

    def clear(self) -> None:
        """Erase the line, so that something else can be written there."""
        if self._is_open:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._is_open = False

    def show(self, text: str) -> None:
        if self._is_live:
            width = max(20, shutil.get_terminal_size().columns) - 1
            self._stream.write(f"\r{printable(text)[:width]}\x1b[K")
            self._stream.flush()
            self._is_open = True
