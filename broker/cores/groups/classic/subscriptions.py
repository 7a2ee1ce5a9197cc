"""The topics that members of consumer groups subscribe to, read from their metadata."""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct, error

_HEAD = Struct(">hi")
_LENGTH = Struct(">h")


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """All topics of the subscriptions; None if one of them cannot be read."""
    topics: set[str] = set()
    for subscription in subscriptions:
        found = _topics(subscription)
        if found is None:
            return None
        topics.update(found)
    return frozenset(topics)


def _topics(subscription: bytes) -> list[str] | None:
    # Every version of the subscription starts with the fields of version 0, so the version does not matter.
    try:
        _, count = _HEAD.unpack_from(subscription)
        # A topic takes at least two bytes, so a larger count is invalid.
        if not 0 <= count <= len(subscription) // 2:
            return None
        topics, position = [], _HEAD.size
        for _ in range(count):
            (length,) = _LENGTH.unpack_from(subscription, position)
            position += _LENGTH.size
            if not 0 <= length <= len(subscription) - position:
                return None
            topics.append(subscription[position : position + length].decode())
            position += length
    except (error, UnicodeDecodeError):
        return None
    return topics
