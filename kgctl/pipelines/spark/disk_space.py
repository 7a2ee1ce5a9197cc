"""Which of a run's folders are on a full disk."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from kgctl.pipelines.settings import RunSettings

# A disk is as good as full for a batch that was just removed from it.
_FULL_BYTES = 64 << 20


def advice(settings: RunSettings) -> str:
    """What to do after a write failed for lack of space: names the folder, or how much each has."""
    free = {folder: _free(folder) for folder in _folders(settings)}
    full = {folder: space for folder, space in free.items() if space < _FULL_BYTES} or free
    named = ", ".join(f"{folder} has {space / 1e6:,.0f} MB free" for folder, space in full.items())
    return f"{named}; make room and start the run again, which continues after the last batch that is complete"


def _folders(settings: RunSettings) -> Iterable[Path]:
    """Where a run writes: tables or an archive, checkpoints, and Spark's temporary files."""
    checkpoints = () if settings.is_archive else (settings.checkpoint_dir,)
    return dict.fromkeys((settings.out_dir, *checkpoints, Path(tempfile.gettempdir())))


def _free(folder: Path) -> int:
    there = next(one for one in (folder, *folder.parents) if one.exists())
    return shutil.disk_usage(there).free
