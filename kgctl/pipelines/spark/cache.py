"""The cache folder. It can be deleted at any time; everything works without it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path


def cache_dir(environ: Mapping[str, str] | None = None) -> Path:
    """KGCTL_CACHE, or kgctl/pipelines in the user's cache; the folder need not exist."""
    environ = os.environ if environ is None else environ
    if chosen := environ.get("KGCTL_CACHE"):
        return Path(chosen).absolute()
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "kgctl" / "pipelines"
