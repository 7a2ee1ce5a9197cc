"""Who makes a class-data archive, and how often: one process at a time, and few attempts a day.

A file per archive holds the number of attempts. The process that makes the archive keeps the file locked until it ends,
however it ends.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time
from pathlib import Path

MAX_ATTEMPTS = 3
# A folder for what an attempt writes begins with this.
FOLDER_PREFIX = ".training-"
_SUFFIX = ".claim"
_DAY_S = 86400.0
# No attempt takes that long.
_HOUR_S = 3600.0


def claim_file(cache: Path, key: str) -> Path:
    return cache / f"classes-{key}{_SUFFIX}"


def begin(claim: Path) -> int | None:
    """A descriptor of the locked file, for the process that makes the archive. None if another process makes it, or after
    MAX_ATTEMPTS within a day."""
    if sys.platform == "win32":
        return None
    import fcntl

    with contextlib.ExitStack() as undo:
        undo.enter_context(contextlib.suppress(OSError))
        descriptor = os.open(claim, os.O_RDWR | os.O_CREAT, 0o600)
        undo.callback(os.close, descriptor)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(descriptor), claim.stat()):
            return None  # it was deleted: the archive is there
        attempts = _attempts(claim)
        if attempts >= MAX_ATTEMPTS:
            return None
        claim.write_text(str(attempts + 1))
        undo.pop_all()
        return descriptor
    return None


def succeed(claim: Path) -> None:
    claim.unlink(missing_ok=True)


def give_up(claim: Path) -> None:
    """Another attempt today would fail in the same way."""
    claim.write_text(str(MAX_ATTEMPTS))


def remove_leftovers(cache: Path) -> None:
    """Delete the folders of attempts that were killed, and files that say nothing any more."""
    for folder in cache.glob(f"{FOLDER_PREFIX}*"):
        if _age_s(folder) > _HOUR_S:
            shutil.rmtree(folder, ignore_errors=True)
    for claim in cache.glob(f"*{_SUFFIX}"):
        if _age_s(claim) > _DAY_S:
            with contextlib.suppress(OSError):
                claim.unlink()


def _attempts(claim: Path) -> int:
    """Within a day."""
    text = claim.read_text(errors="replace")
    return int(text) if text.isdecimal() and _age_s(claim) < _DAY_S else 0


def _age_s(path: Path) -> float:
    """0 for a file that is not there."""
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return 0.0
