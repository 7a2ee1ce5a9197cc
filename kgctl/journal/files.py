"""Files that are complete or absent after a crash, and that only their user can read."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from kgctl.client.net.errors import KgctlError


class CannotKeep(KgctlError):
    """A plan, a snapshot or the journal cannot be written or read."""

    name = "JOURNAL_FAILED"


def write_whole(path: Path, content: bytes) -> None:
    """Create the file, or replace it, and make it durable. Raises OSError; then nothing is left behind."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.fchmod(descriptor, 0o600)
            write_all(descriptor, content)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(temporary, path)
        sync_folder(path.parent)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def write_all(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Create the folder and those above it, durably, for their user only."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
        sync_folder(folder.parent)
