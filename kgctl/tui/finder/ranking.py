"""Ranks names by how well they match what was typed: exact names, then prefixes, words, parts, and letters in this order."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum

from broker.light_dataclasses import dataclass, field
from broker.light_named_tuples import NamedTuple


class Match(IntEnum):
    """How a name matches, the best first."""

    EXACT = 0
    PREFIX = 1
    WORD = 2  # a word inside the name begins with the text
    PART = 3
    LETTERS = 4  # its letters stand in the name in this order


@dataclass(frozen=True)
class Source:
    """Names of one kind. `names` are printable; `choose(place)` opens one of them, `note(place)` says more about it."""

    kind: str
    names: Sequence[str]
    choose: Callable[[int], object]
    note: Callable[[int], str] = lambda _: ""
    folded: Sequence[str] = field(default=(), compare=False)

    @classmethod
    def of(
        cls, kind: str, names: Sequence[str], choose: Callable[[int], object], note: Callable[[int], str] = lambda _: ""
    ) -> Source:
        return cls(kind, names, choose, note, [name.casefold() for name in names])


class Found(NamedTuple):
    source: Source
    place: int

    @property
    def name(self) -> str:
        return self.source.names[self.place]


def find(typed: str, sources: Sequence[Source], most: int) -> tuple[list[Found], int]:
    """The best matches and the number of all. Equally good ones are ordered by source, then short names first."""
    wanted = " ".join(typed.casefold().split())
    if not wanted:
        everything = [Found(source, place) for source in sources for place in range(min(most, len(source.names)))]
        return everything[:most], sum(len(source.names) for source in sources)
    matches = list(_matches(wanted, sources))
    best = heapq.nsmallest(most, matches)
    return [Found(sources[rank], place) for _, _, rank, _, _, place in best], len(matches)


def _matches(wanted: str, sources: Sequence[Source]) -> Iterator[tuple[int, int, int, int, str, int]]:
    for rank, source in enumerate(sources):
        for place, name in enumerate(source.folded):
            found = match(wanted, name)
            if found is not None:
                yield found[0], found[1], rank, len(name), name, place


def match(wanted: str, name: str) -> tuple[Match, int] | None:
    """How the name matches and how far apart its letters are; None if it does not. Both texts are case-folded."""
    at = name.find(wanted)
    if at == 0:
        return (Match.EXACT if len(name) == len(wanted) else Match.PREFIX), 0
    if at > 0:
        while at > 0:
            if not name[at - 1].isalnum():
                return Match.WORD, 0
            at = name.find(wanted, at + 1)
        return Match.PART, 0
    first = last = -1
    for letter in wanted:
        if letter == " ":
            continue
        last = name.find(letter, last + 1)
        if last < 0:
            return None
        first = last if first < 0 else first
    return Match.LETTERS, last - first
