"""Questions of which a request carries one per partition: as few rounds of them as there can be."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import TypeVar

K = TypeVar("K", bound=Hashable)


def rounds(wanted: Mapping[K, Iterable[int]]) -> Iterator[dict[K, int]]:
    """Each round has one number of every key that has more; the numbers of a key come in rising order."""
    for numbers in zip_longest(*map(sorted, wanted.values())):
        yield {key: number for key, number in zip(wanted, numbers, strict=True) if number is not None}
