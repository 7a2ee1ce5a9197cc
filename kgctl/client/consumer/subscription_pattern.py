"""A pattern that the broker matches."""

from __future__ import annotations

from broker.light_named_tuples import NamedTuple


class SubscriptionPattern(NamedTuple):
    """A regular expression in RE2's syntax that a whole name has to match. The broker matches it (KIP-848): `group.protocol=consumer`."""

    pattern: str
