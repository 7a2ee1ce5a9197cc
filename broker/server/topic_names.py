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


class NameIndex:
    """Finds the topic that metrics could not tell from a new one, because '.' and '_' look the same there."""

    def __init__(self, topics: Iterable[str]) -> None:
        self._topics = topics
        self._unified: dict[str, str] | None = None

    def collision(self, name: str) -> str | None:
        """The topic that a new one of this name would collide with. All names are looked at once, for the first that could."""
        if "." not in name and "_" not in name:
            return None
        if self._unified is None:
            self._unified = {_unify(topic): topic for topic in self._topics}
        return self._unified.get(_unify(name))

    def add(self, name: str) -> None:
        """A topic was made."""
        if self._unified is not None:
            self._unified[_unify(name)] = name


def _unify(name: str) -> str:
    return name.replace(".", "_")
