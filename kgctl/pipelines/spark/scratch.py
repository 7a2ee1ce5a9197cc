"""A folder for one session's own files; one that a killed session left behind is cleaned up by the next."""

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
    """In the system's folder for temporary files."""
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
    """For as long as this interpreter lives, however it ends."""
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
        # In use, somebody else's, or only just being made.
        return False
