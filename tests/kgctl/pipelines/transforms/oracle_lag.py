"""Lag, rates and time to catch up in plain Python. Times are seconds since any moment."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

Key = tuple[str, str, int]
Commit = tuple[Key, float, int | None]
End = tuple[str, int, float, int, str]


def expected(
    commits: Iterable[Commit], ends: Iterable[End], behind: Mapping[tuple[str, int, int], float]
) -> dict[tuple[str, str, int, float], tuple[Any, ...]]:
    """(committed, log end, lag, lag in ms, consume rate, produce rate, eta in s) by group, topic, partition and time.

    `commits` in the order of the log; `behind`: when the first record at or after an offset was written.
    """
    history: dict[Key, list[tuple[float, int | None]]] = defaultdict(list)
    for key, second, offset in commits:
        history[key].append((second, offset))
    found: dict[tuple[str, str, int, float], tuple[Any, ...]] = {}
    for key, moves in history.items():
        before: tuple[float, int, int] | None = None
        for topic, part, second, end, _ in sorted(ends, key=lambda row: row[2]):
            if (topic, part) != key[1:]:
                continue
            place = bisect_right([move[0] for move in moves], second)
            committed = moves[place - 1][1] if place else None
            if committed is None:
                before = None
                continue
            records = max(0, end - committed)
            since = behind.get((topic, part, committed))
            lag_ms = 0 if not records else None if since is None else max(0, round((second - since) * 1000))
            consumed = produced = left = None
            if before is not None:
                consumed = (committed - before[1]) / (second - before[0])
                produced = (end - before[2]) / (second - before[0])
            if not records:
                left = 0.0
            elif consumed is not None and produced is not None and consumed > produced:
                left = pytest.approx(records / (consumed - produced))
            found[(*key, second)] = (committed, end, records, lag_ms, consumed, produced, left)
            before = (second, committed, end)
    return found
