"""The points in time at which lag is computed: multiples of a step, and now."""

from __future__ import annotations

MAX_POINTS = 300
_ROUND_STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 604800)


def points(first_ms: int, last_point_ms: int | None, now_ms: int, step_ms: int, most: int = MAX_POINTS) -> list[int]:
    """ms since 1970, rising, the last of them now; only points after `last_point_ms`, the last one of an earlier run.

    The step is lengthened if there would be more than `most` points.
    """
    begin = max(first_ms, first_ms if last_point_ms is None else last_point_ms + 1)
    if begin > now_ms:
        return []
    step = wide_enough(now_ms - begin, max(1, step_ms), most)
    at = -(-begin // step) * step
    return [*range(at, now_ms, step), now_ms]


def end_of_points(last_point_ms: int | None, now_ms: int, step_ms: int, *, follow: bool) -> int:
    """Up to when to compute points: now, or under --follow, which will continue, the last multiple of the step.

    The first points under --follow include now, so that users need not wait for them.
    """
    return now_ms - now_ms % max(1, step_ms) if follow and last_point_ms is not None else now_ms


def wide_enough(span_ms: int, step_ms: int, most: int = MAX_POINTS) -> int:
    """The step, or the shortest longer step in round numbers that gives at most `most` points in the span."""
    if span_ms // step_ms < most:
        return step_ms
    for seconds in _ROUND_STEPS_S:
        if seconds * 1000 >= step_ms and span_ms // (seconds * 1000) < most:
            return seconds * 1000
    return -(-span_ms // (most - 1))
