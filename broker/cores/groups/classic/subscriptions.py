"""The topics that members of consumer groups subscribe to, read from their metadata."""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct, error

_HEAD = Struct(">hi")
_LENGTH = Struct(">h")


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """All topics named; None if any subscription cannot be read."""
    topics: set[str] = set()
    for subscription in subscriptions:
        named = _topics(subscription)
        if named is None:
            return None
        topics.update(named)
    return frozenset(topics)


def _topics(subscription: bytes) -> list[str] | None:
    # Every version of the subscription begins as version 0 does, so no version is looked at.
    try:
        _, count = _HEAD.unpack_from(subscription)
        # A topic takes at least two bytes: a count that claims more than there are bytes is nonsense.
        if not 0 <= count <= len(subscription) // 2:
            return None
        topics, at = [], _HEAD.size
        for _ in range(count):
            (length,) = _LENGTH.unpack_from(subscription, at)
            at += _LENGTH.size
            if not 0 <= length <= len(subscription) - at:
                return None
            topics.append(subscription[at : at + length].decode())
            at += length
    except (error, UnicodeDecodeError):
        return None
    return topics
