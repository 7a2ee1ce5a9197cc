"""Replaces small files atomically."""

from __future__ import annotations

import os
from pathlib import Path


def replace_file(path: Path, content: bytes) -> None:
    """Readers see the old content or the new, never a part. After a power cut it may be the old again."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_bytes(content)
        os.replace(draft, path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
