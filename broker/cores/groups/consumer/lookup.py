"""A lookup of the topics that match the regular expressions of a group, under way."""

from __future__ import annotations

from broker.cores.patterns import InvalidPattern, Pattern
from broker.light_named_tuples import NamedTuple

# A step does not match more names, unless one expression needs them; the next step comes after other requests.
MATCHED_AT_ONCE = 10_000


class Lookup(NamedTuple):
    """The names of topics, the expressions that have not been matched with them, and what the others match."""

    names: list[str]
    waiting: list[str]
    found: dict[str, frozenset[str]]

    def advance(self) -> bool:
        """Match some expressions. Whether none waits any more."""
        matched = 0
        while self.waiting and matched < MATCHED_AT_ONCE:
            regex = self.waiting.pop(0)
            self.found[regex] = _matching(regex, self.names)
            matched += len(self.names)
        return not self.waiting


def _matching(regex: str, names: list[str]) -> frozenset[str]:
    """The topics whose whole name matches; none if a newer broker has stored an expression that this one cannot read."""
    try:
        pattern = Pattern(regex)
    except InvalidPattern:
        return frozenset()
    return frozenset(filter(pattern.matches, names))
