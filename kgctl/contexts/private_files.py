"""Files of one user: read whole, replaced atomically, private from the moment they exist."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from kgctl.contexts.names import BadContext

_MAX_BYTES = 1 << 20


def read_bytes(path: Path) -> bytes | None:
    """The content, None if there is no such file. Raises BadContext for what is not a regular file of up to 1 MiB."""
    try:
        # A pipe in the place of the file must not block every command.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise BadContext(f"cannot read {path}: {error.strerror}") from None
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise BadContext(f"cannot read {path}: it is not a regular file")
        content = file.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise BadContext(f"cannot read {path}: it is larger than {_MAX_BYTES >> 20} MiB")
    return content


def write(path: Path, content: bytes) -> None:
    """Replace the file, or the file to which a link points, with mode 0600. Raises BadContext."""
    from broker.atomic_file import replace_file

    target = Path(os.path.realpath(path))
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(target, content)
    except OSError as error:
        raise BadContext(f"cannot write {path}: {error.strerror}") from None


@contextlib.contextmanager
def one_writer(folder: Path) -> Iterator[None]:
    """Hold the lock of the folder, so that two commands do not overwrite each other's changes. Raises BadContext."""
    import fcntl

    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise BadContext(f"cannot open the folder {folder}: {error.strerror}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
