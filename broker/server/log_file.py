"""The daemon's log: a file of bounded size, and stderr until the broker leaves it."""

from __future__ import annotations

import logging
import os
import time
from itertools import pairwise
from pathlib import Path

LOG_FILE_BYTES, OLD_LOG_FILES = 10 * 1024 * 1024, 5


def start_logging(log_file: Path, to_stderr: int) -> None:
    # A log line that cannot be written must not print a traceback to stderr.
    logging.raiseExceptions = False
    layout = logging.Formatter("%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s %(message)s", "%Y-%m-%dT%H:%M:%S")
    layout.converter = time.gmtime
    file_handler = RotatingLog(log_file)
    stderr_handler = logging.StreamHandler()
    stderr_handler.setLevel(to_stderr)
    root = logging.getLogger()
    root.setLevel(logging.INFO)
    for handler in (file_handler, stderr_handler):
        handler.setFormatter(layout)
        root.addHandler(handler)


class RotatingLog(logging.FileHandler):
    """Appends to a log file and keeps a few numbered old files. (Importing logging.handlers would take 5 ms.)"""

    def __init__(self, path: Path, max_bytes: int = LOG_FILE_BYTES, old_files: int = OLD_LOG_FILES) -> None:
        super().__init__(path, encoding="utf-8")
        self._max_bytes, self._old_files = max_bytes, old_files
        self._has_stderr = False

    def emit(self, record: logging.LogRecord) -> None:
        try:
            if self.stream is not None and self.stream.tell() >= self._max_bytes:
                self._rotate()
        except OSError:
            self.handleError(record)
        super().emit(record)

    def take_stderr(self) -> None:
        """Redirect everything that the process writes to stderr to the file."""
        self._has_stderr = True
        if self.stream is not None:
            os.dup2(self.stream.fileno(), 2)

    def _rotate(self) -> None:
        names = [self.baseFilename, *(f"{self.baseFilename}.{number}" for number in range(1, self._old_files + 1))]
        for newer, older in reversed(list(pairwise(names))):
            if os.path.exists(newer):
                os.replace(newer, older)
        if self.stream is not None:
            self.stream.close()
        self.stream = self._open()
        if self._has_stderr:
            self.take_stderr()


def leave_stderr() -> RotatingLog | None:
    """Log to the file only, no longer to stderr. Returns the handler of the file."""
    found = None
    for handler in list(logging.getLogger().handlers):
        if isinstance(handler, RotatingLog):
            found = handler
        else:
            logging.getLogger().removeHandler(handler)
    return found
