"""Where the pages of groups are. A group id may hold any character; a file name may not."""

from __future__ import annotations

import hashlib
import re

GROUPS = "report/groups"
_MAX_CHARS = 60
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+", re.ASCII)


def page_of(group: str) -> str:
    """Relative to the overview. Names that differ only in case, or are shortened, get different files."""
    digest = hashlib.sha256(group.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    readable = _UNSAFE.sub("_", group)[:_MAX_CHARS].strip("_-")
    return f"{GROUPS}/{readable or 'group'}-{digest}.html"
