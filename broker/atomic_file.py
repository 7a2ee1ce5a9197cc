"""Small files that others read while they are replaced: a reader sees the old file, no file, or all of the new one."""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MAX_BYTES = 1 << 20
# O_EXCL and O_NOFOLLOW: never write through a link, or to a file, that somebody else put there.
_DRAFT = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

FileId = tuple[int, int]


def file_id(status: os.stat_result) -> FileId:
    """Distinguishes files of one machine."""
    return status.st_dev, status.st_ino


def write_json(directory: int, path: Path, content: Mapping[str, object]) -> FileId:
    """Write the file named as `path` in the open `directory`. Returns its id. The OSError of a failure names `path`."""
    draft = f".{path.name}.{os.urandom(8).hex()}"
    try:
        descriptor = os.open(draft, _DRAFT, 0o600, dir_fd=directory)
        try:
            with open(descriptor, "wb") as file:
                file.write(json.dumps(content).encode() + b"\n")
                written = file_id(os.fstat(descriptor))
            os.replace(draft, path.name, src_dir_fd=directory, dst_dir_fd=directory)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(draft, dir_fd=directory)
            raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    return written


def read_json(path: Path, directory: int | None = None) -> tuple[dict[str, Any], FileId] | None:
    """The content and the id of the file; None if there is no such file or it is not a JSON object.

    `path` is relative to the open `directory`.
    """
    try:
        # Without O_NONBLOCK, opening a FIFO would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            content = json.loads(file.read(MAX_BYTES)) if stat.S_ISREG(status.st_mode) else None
    except (OSError, ValueError):
        return None
    return (content, file_id(status)) if isinstance(content, dict) else None


def remove_file(directory: int | None, name: str, expected: FileId) -> None:
    """Remove a file unless another one has taken its place. A failure is ignored."""
    with contextlib.suppress(OSError):
        if file_id(os.stat(name, dir_fd=directory, follow_symlinks=False)) == expected:
            os.unlink(name, dir_fd=directory)


def replace_file(path: Path, content: bytes) -> None:
    """Write a private file durably: after a power cut it has the old content or the new."""
    draft = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    descriptor = os.open(draft, _DRAFT, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        os.replace(draft, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
