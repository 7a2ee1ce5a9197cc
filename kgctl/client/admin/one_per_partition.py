"""Splits lookups of several values per key, because a request has room for one value per partition."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import TypeVar

K = TypeVar("K", bound=Hashable)


def one_per_partition(wanted: Mapping[K, Iterable[int]]) -> Iterator[dict[K, int]]:
    """The contents of as few requests as possible; the values of a key come in ascending order."""
    for numbers in zip_longest(*map(sorted, wanted.values())):
        yield {key: number for key, number in zip(wanted, numbers, strict=True) if number is not None}
