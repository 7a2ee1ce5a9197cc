"""Replaces small files atomically."""

from __future__ import annotations

import os
from pathlib import Path


def replace_file(path: Path, content: bytes) -> None:
    """Readers see the old content or the new, never a part. Not synced: after a power cut it may be the old."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_bytes(content)
    os.replace(draft, path)
