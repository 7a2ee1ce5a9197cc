"""The file `journal.jsonl`: lines that several processes append, one when a change begins and one when it has ended."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from broker.atomic_file import replace_file
from kgctl.journal.files import make_folder, sync_folder, write_all

FILE = "journal.jsonl"


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of the folder. Raises OSError."""
    import fcntl

    make_folder(folder)
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def append(folder: Path, line: dict[str, Any]) -> None:
    """Append one line, durably or not at all. Raises OSError."""
    with locked(folder):
        path = folder / FILE
        is_new = not path.exists()
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            # A process that was killed, or a full disk, may have left half a line.
            is_whole = not size or os.pread(descriptor, 1, size - 1) == b"\n"
            try:
                write_all(descriptor, (b"" if is_whole else b"\n") + json.dumps(line).encode() + b"\n")
                os.fsync(descriptor)
            except OSError:
                with contextlib.suppress(OSError):
                    os.ftruncate(descriptor, size)
                raise
        finally:
            os.close(descriptor)
        if is_new:
            sync_folder(folder)


def read_lines(folder: Path) -> list[dict[str, Any]]:
    """The lines that are whole; others, such as half a last line, are left out. Raises OSError."""
    try:
        content = (folder / FILE).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return []
    found = []
    for text in content.split(b"\n"):
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if isinstance(line, dict) and isinstance(line.get("id"), str):
            found.append(line)
    return found


def replace_lines(folder: Path, lines: Iterable[dict[str, Any]]) -> None:
    """Replace all lines; the caller holds the lock. Raises OSError."""
    replace_file(folder / FILE, b"".join(json.dumps(line).encode() + b"\n" for line in lines))
