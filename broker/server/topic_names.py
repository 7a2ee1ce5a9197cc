"""Which names a topic may have, and what is wrong with one that it may not."""

from __future__ import annotations

import re
from collections.abc import Iterable

MAX_LENGTH = 249
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def name_error(name: str) -> str | None:
    """Why `name` cannot be a topic's name; None if it can."""
    if not name:
        return "Topic name is invalid: it is empty."
    if name in (".", ".."):
        return "Topic name is invalid: '.' and '..' are not allowed."
    if len(name) > MAX_LENGTH:
        return f"Topic name is invalid: it is longer than {MAX_LENGTH} characters."
    if not _LEGAL.fullmatch(name):
        return f"Topic name is invalid: '{name}' has characters other than ASCII letters, digits, '.', '_' and '-'."
    return None


def collision(name: str, others: Iterable[str]) -> str | None:
    """A topic that metrics could not tell from `name`, because '.' and '_' look the same there."""
    if "." not in name and "_" not in name:
        return None
    unified = name.replace(".", "_")
    return next((other for other in others if other != name and other.replace(".", "_") == unified), None)
