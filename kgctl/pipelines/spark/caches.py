"""The folder for what makes later starts faster: it may be deleted at any time, and everything works without it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def cache_dir(environ: Mapping[str, str] | None = None) -> Path:
    """KGCTL_CACHE, or kgctl/pipelines in the user's cache; it need not exist."""
    environ = os.environ if environ is None else environ
    if chosen := environ.get("KGCTL_CACHE"):
        return Path(chosen).absolute()
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "kgctl" / "pipelines"


def writable_cache_dir() -> Path | None:
    """None: it cannot be made or written to, so nothing is kept."""
    folder = cache_dir()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK | os.X_OK) else None
