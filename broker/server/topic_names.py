"""Topic names: which are valid, and which collide."""

from __future__ import annotations

import re
from collections.abc import Iterable

MAX_LENGTH = 249
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def name_error(name: str) -> str | None:
    """Why `name` is not a valid topic name; None if it is."""
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
    """Finds topics whose names collide in Kafka's metrics, where '.' and '_' are the same."""

    def __init__(self, topics: Iterable[str]) -> None:
        self._topics = topics
        self._unified: dict[str, str] | None = None

    def collision(self, name: str) -> str | None:
        """The topic with which a new topic of this name would collide. The first name that could collide builds the index."""
        if "." not in name and "_" not in name:
            return None
        if self._unified is None:
            self._unified = {_unify(topic): topic for topic in self._topics}
        return self._unified.get(_unify(name))

    def add(self, name: str) -> None:
        """Add the name of a new topic."""
        if self._unified is not None:
            self._unified[_unify(name)] = name


def _unify(name: str) -> str:
    return name.replace(".", "_")
