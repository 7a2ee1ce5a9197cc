"""A temporary folder for one session; the next session deletes the folders that killed sessions left behind."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

_PREFIX = "kgctl-spark-"
_LOCK = "alive"


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """A new folder in the system's temporary folder, deleted at the end of the block."""
    base = Path(tempfile.gettempdir())
    for folder in base.glob(f"{_PREFIX}*"):
        if _is_left_behind(folder):
            shutil.rmtree(folder, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    try:
        with _locked(folder / _LOCK):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Held as long as this interpreter lives, however it ends."""
    with path.open("wb") as file:
        if sys.platform != "win32":
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _is_left_behind(folder: Path) -> bool:
    if sys.platform == "win32":
        return False
    import fcntl

    try:
        with (folder / _LOCK).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
    except OSError:
        # The folder is in use, belongs to another user, or is just being created.
        return False
