"""WatchedFile: the parsed content of a file, read again when the file has changed."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import Generic, TypeVar

from broker.security.credentials.errors import BadCredentials

T = TypeVar("T")
MAX_BYTES = 16 * 1024 * 1024

logger = logging.getLogger("broker.security")


class WatchedFile(Generic[T]):
    """While a changed file cannot be read, the content before the change stays valid, and the log says so once."""

    def __init__(self, path: str, parse: Callable[[str], T]) -> None:
        """Raises BadCredentials if the file cannot be read; `parse` raises ValueError for content that is not valid."""
        self._path = path
        self._parse = parse
        try:
            self._stamp = _stamp(path)
            self._content = self._read()
        except (OSError, ValueError) as error:
            raise BadCredentials(f"{path}: {_reason(error)}") from None

    def content(self) -> T:
        try:
            stamp = _stamp(self._path)
        except OSError:
            stamp = None
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self._content = self._read()
            except (OSError, ValueError) as error:
                logger.error("%s: %s; what it contained before remains valid", self._path, _reason(error))
            else:
                logger.info("%s has changed and is in use", self._path)
        return self._content

    def _read(self) -> T:
        with open(self._path, encoding="utf-8") as file:
            text = file.read(MAX_BYTES + 1)
        if len(text) > MAX_BYTES:
            raise ValueError(f"more than {MAX_BYTES} characters")
        return self._parse(text)


def _stamp(path: str) -> tuple[int, ...] | None:
    found = os.stat(path)
    return found.st_mtime_ns, found.st_size, found.st_ino


def _reason(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8"
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
