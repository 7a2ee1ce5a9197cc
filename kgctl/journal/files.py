"""Folders and writes of the journal. `broker.atomic_file` replaces whole files."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from kgctl.client.net.errors import KgctlError


class CannotKeep(KgctlError):
    """A plan, a snapshot or the journal cannot be written or read."""

    name = "JOURNAL_FAILED"
    changed_nothing = True


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
