"""Replaces small files atomically."""

from __future__ import annotations

import os
from pathlib import Path


def replace_file(path: Path, content: bytes, *, sync: bool = False) -> None:
    """Readers see the old content or the new, never a part. Without `sync` it may be the old again after a power cut."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            if sync:
                os.fsync(file.fileno())
        os.replace(draft, path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
