"""The points in time at which lag is told: multiples of a step, and now."""

from __future__ import annotations

MOST_POINTS = 300
_NICE = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 604800)


def points(first_ms: int, told_until_ms: int | None, now_ms: int, step_ms: int, most: int = MOST_POINTS) -> list[int]:
    """ms since 1970, rising, the last of them now; those after `told_until_ms`, which an earlier run has told.

    The step is made longer where there would be more than `most` points.
    """
    begin = max(first_ms, first_ms if told_until_ms is None else told_until_ms + 1)
    if begin > now_ms:
        return []
    step = wide_enough(now_ms - begin, max(1, step_ms), most)
    at = -(-begin // step) * step
    return [*range(at, now_ms, step), now_ms]


def wide_enough(span_ms: int, step_ms: int, most: int = MOST_POINTS) -> int:
    """The step, or the first longer one in round numbers that gives no more than `most` points in the span."""
    if span_ms // step_ms < most:
        return step_ms
    for seconds in _NICE:
        if seconds * 1000 >= step_ms and span_ms // (seconds * 1000) < most:
            return seconds * 1000
    return -(-span_ms // (most - 1))
