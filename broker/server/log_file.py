"""The daemon's log: a file of bounded size, and stderr until the broker leaves it."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from io import TextIOWrapper
from itertools import pairwise
from pathlib import Path
from typing import cast

# Whoever waits for the start reads these lines on stderr, whatever the level there.
PROGRESS_LOGGER = "broker.progress"
LOG_FILE_BYTES, OLD_LOG_FILES = 10 * 1024 * 1024, 5
# How many warnings of one kind about one client are logged in a while: whoever can connect can cause them.
MOST_WARNINGS, WARNINGS_S = 50, 10.0
# Of how many kinds and clients warnings are counted.
MOST_KINDS = 1000


def start_logging(log_file: Path, to_stderr: int) -> None:
    # A log line that cannot be written must not print a traceback to stderr.
    logging.raiseExceptions = False
    layout = logging.Formatter("%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s %(message)s", "%Y-%m-%dT%H:%M:%S")
    layout.converter = time.gmtime
    file_handler = RotatingLog(log_file)
    stderr_handler = logging.StreamHandler()
    stderr_handler.addFilter(lambda record: record.levelno >= to_stderr or record.name == PROGRESS_LOGGER)
    logging.getLogger("broker.server").addFilter(Sparing())
    root = logging.getLogger()
    root.setLevel(logging.INFO)
    for handler in (file_handler, stderr_handler):
        handler.setFormatter(layout)
        root.addHandler(handler)


class Sparing(logging.Filter):
    """Drops warnings that repeat too often, so that clients cannot rotate older lines away. The next one says how many."""

    def __init__(self) -> None:
        super().__init__()
        # When counting began, and how many there have been since.
        self._counts: dict[tuple[str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno != logging.WARNING:
            return True
        kind = str(record.msg), str(record.args[0]) if isinstance(record.args, tuple) and record.args else ""
        since, count = self._counts.get(kind, (record.created, 0))
        if record.created - since >= WARNINGS_S:
            if count > MOST_WARNINGS:
                left_out = f"{count - MOST_WARNINGS} lines like this are left out"
                record.msg, record.args = f"{record.getMessage()} ({left_out})", None
            since, count = record.created, 0
        if kind not in self._counts and len(self._counts) >= MOST_KINDS:
            self._counts.clear()
        self._counts[kind] = since, count + 1
        return count < MOST_WARNINGS


class RotatingLog(logging.FileHandler):
    """Appends to a log file and keeps a few numbered old files. (Importing logging.handlers would take 5 ms.)

    The directory stays open: a rotation never touches the files of a directory that took its place.
    """

    def __init__(self, path: Path, max_bytes: int = LOG_FILE_BYTES, old_files: int = OLD_LOG_FILES) -> None:
        self._directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._max_bytes, self._old_files = max_bytes, old_files
        self._has_stderr = False
        try:
            super().__init__(path, encoding="utf-8")
        except BaseException:
            os.close(self._directory)
            raise

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

    def _open(self) -> TextIOWrapper:
        return self._open_as(self.baseFilename, self.mode)

    def _open_as(self, path: str, mode: str) -> TextIOWrapper:
        def open_in_directory(path: str, flags: int) -> int:
            try:
                return os.open(os.path.basename(path), flags, 0o666, dir_fd=self._directory)
            except OSError as error:
                raise OSError(error.errno, error.strerror, path) from error

        return cast(TextIOWrapper, open(path, mode, encoding=self.encoding, opener=open_in_directory))

    def _rotate(self) -> None:
        name = os.path.basename(self.baseFilename)
        names = [f"{name}.new", name, *(f"{name}.{number}" for number in range(1, self._old_files + 1))]
        # First of all: if no file can be opened, the old one remains in use.
        fresh = self._open_as(f"{self.baseFilename}.new", "w")
        try:
            for newer, older in reversed(list(pairwise(names))):
                with contextlib.suppress(FileNotFoundError):
                    os.replace(newer, older, src_dir_fd=self._directory, dst_dir_fd=self._directory)
        except BaseException:
            fresh.close()
            raise
        if self.stream is not None:
            self.stream.close()
        self.stream = fresh
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
