"""Burrow's rules in plain Python. Times are seconds since any moment."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

WINDOW = 10
RECENT_S = 100

Commit = tuple[float, int | None]
Point = tuple[float, int]


def expected(
    commits: Sequence[Commit], points: Sequence[Point], now: float
) -> tuple[str, int, float, float | None] | None:
    """(status, lag, complete, eta in s) of a partition; None if it has no commit since the last was deleted.

    `commits` in the order of the log, `points` (time, end of the log) with one at the time of each commit.
    """
    ends = {second: end for second, end in points if second <= now}
    last_deleted = max((number for number, (_, offset) in enumerate(commits) if offset is None), default=-1)
    window = [
        (second, offset or 0, max(0, ends[second] - (offset or 0))) for second, offset in commits[last_deleted + 1 :]
    ]
    window = window[-WINDOW:]
    if not window:
        return None
    steps = list(pairwise(window))
    current = max(0, ends[max(ends)] - window[-1][1])
    status = "OK"
    recent = [end for second, end in ends.items() if second >= now - RECENT_S]
    has_lagged = all(end > window[-1][1] for end in recent)
    if current and has_lagged and now - window[-1][0] > window[-1][0] - window[0][0]:
        status = "STOPPED"
    elif current and all(lag for *_, lag in window):
        if any(later[1] < earlier[1] for earlier, later in steps):
            status = "REWOUND"
        elif all(later[1] == earlier[1] for earlier, later in steps):
            status = "STALLED"
        elif not any(later[2] < earlier[2] for earlier, later in steps):
            status = "LAGGING"
    first_second, _, first_lag = window[0]
    eta_s = (
        None if status == "STOPPED" or current >= first_lag else current * (now - first_second) / (first_lag - current)
    )
    return status, max(current, window[-1][2]), len(window) / WINDOW, eta_s if current else 0.0
