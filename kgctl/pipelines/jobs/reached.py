"""Up to which time all commits have been read: what is said of later times would miss some, for good."""

from __future__ import annotations

from pathlib import Path

from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.whole_files import replace_file

_FILE = "kgctl-read-until"


def remember(settings: RunSettings, until_ms: int) -> None:
    """`until_ms`, ms since 1970: decode has begun to look for what is new then, and has read all that it found."""
    replace_file(_path(settings), str(until_ms).encode())


def reached(settings: RunSettings) -> int | None:
    """None: decode has not said yet."""
    path = _path(settings)
    return int(path.read_text()) if path.exists() else None


def _path(settings: RunSettings) -> Path:
    return settings.checkpoint_dir / "decode" / _FILE
