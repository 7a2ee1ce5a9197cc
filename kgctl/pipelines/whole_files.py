"""Small files that are there wholly, as they were or as they are now, whenever their writer dies."""

from __future__ import annotations

import os
from pathlib import Path


def replace_file(path: Path, content: bytes) -> None:
    """Whoever has the old one open sees all of it. Not synced: after a power cut it may be the old one."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_bytes(content)
    os.replace(draft, path)
