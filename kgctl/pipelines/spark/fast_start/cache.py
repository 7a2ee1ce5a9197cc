"""The cache folder, if it can be written to."""

from __future__ import annotations

import os
from pathlib import Path

from kgctl.pipelines.spark.cache import cache_dir


def writable_cache_dir() -> Path | None:
    """None if the folder cannot be created or written to; then nothing is cached."""
    folder = cache_dir()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK | os.X_OK) else None
