"""Baselines and anomalies in plain Python, row by row, as their docstrings define them. Without Spark."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from kgctl.pipelines.transforms.expected import COMMIT_RATE, DAY, LAG, REBALANCES, RECENT, WEEK

HOUR, DAY_MS, BACK = 3_600_000, 86_400_000, {WEEK: [168 * k for k in range(1, 7)], DAY: [24 * k for k in range(1, 15)]}


class Observed(NamedTuple):
    """A row of OBSERVED_DDL; `at` in ms since 1970."""

    group: str
    metric: str
    at: int
    value: float
    floor: float


@dataclass(frozen=True)
class Judged:
    """A row of EXPECTED."""

    row: Observed
    basis: str | None = None
    observations: int | None = None
    middle: float | None = None
    low: float = 0.0
    high: float = 0.0
    spread: float = 0.0
    score: float | None = None


@dataclass(frozen=True)
class Found:
    """A row of ANOMALIES, in ms; `end` is when the last bucket of it ended."""

    group: str
    metric: str
    event: str
    at: int
    since: int
    end: int | None
    worst: float


def judge(rows: Iterable[Observed], bucket: int) -> list[Judged]:
    series: dict[tuple[str, str], list[Observed]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row.at):
        series[row.group, row.metric].append(row)
    judged = [one for some in series.values() for one in _judge_series(some, bucket)]
    lags = {(one.row.group, one.row.at): one.score for one in judged if one.row.metric == LAG}
    return [_without_harmless_drop(one, lags) for one in judged]


def _judge_series(rows: list[Observed], bucket: int) -> list[Judged]:
    hours: dict[int, list[float]] = defaultdict(list)
    for row in rows:
        hours[row.at // HOUR].append(row.value)
    known: dict[int, Judged | None] = {}
    found = []
    for place, row in enumerate(rows):
        hour = row.at // HOUR
        if hour not in known:
            known[hour] = _of_hours(row, hour, hours)
        base = known[hour] or _of_recent(row, rows[max(0, place - 288) : place], bucket)
        found.append((base and _scored(base, row, bucket)) or Judged(row))
    return found


def _of_hours(row: Observed, hour: int, hours: Mapping[int, list[float]]) -> Judged | None:
    for basis, back in BACK.items():
        then = [hours[hour - one] for one in back if hour - one in hours]
        if len(then) >= 3:
            lows, highs = [min(values) for values in then], [max(values) for values in then]
            return _base(row, basis, [value for values in then for value in values], median(lows), median(highs))
    return None


def _of_recent(row: Observed, before: list[Observed], bucket: int) -> Judged | None:
    values = sorted(one.value for one in before if one.at >= row.at - 288 * bucket)
    if len(values) < 24:
        return None
    first, third = _ranked(values, 0.25), _ranked(values, 0.75)
    reach = 1.5 * (third - first)
    return _base(row, RECENT, values, max(0.0, first - reach), third + reach)


def _base(row: Observed, basis: str, values: list[float], low: float, high: float) -> Judged:
    middle = _ranked(sorted(values), 0.5)
    deviation = _ranked(sorted(abs(value - middle) for value in values), 0.5)
    return Judged(row, basis, len(values), middle, low, high, deviation)


def _ranked(ordered: list[float], share: float) -> float:
    return ordered[math.floor((len(ordered) - 1) * share)]


def _scored(base: Judged, row: Observed, bucket: int) -> Judged:
    assert base.middle is not None
    seconds = bucket / 1000
    counted = {COMMIT_RATE: math.sqrt(base.middle * seconds) / seconds, REBALANCES: math.sqrt(base.middle), LAG: 0.0}
    spread = max(1.4826 * base.spread, 0.1 * base.middle, (base.high - base.low) / 4, row.floor, counted[row.metric])
    score = 0.0
    if row.value > base.high:
        score = (row.value - base.high) / spread
    elif row.value < base.low and row.metric == COMMIT_RATE:
        score = (row.value - base.low) / spread
    return Judged(row, base.basis, base.observations, base.middle, base.low, base.high, spread, score)


def _without_harmless_drop(one: Judged, lags: Mapping[tuple[str, int], float | None]) -> Judged:
    lag = lags.get((one.row.group, one.row.at))
    if one.score is None or one.score >= 0 or lag is None or lag > 0:
        return one
    return Judged(one.row, one.basis, one.observations, one.middle, one.low, one.high, one.spread, 0.0)


def anomalies(judged: Iterable[Judged], bucket: int, until: int | None = None) -> list[Found]:
    """`until`: the end of all buckets; None: that of the last one."""
    series: dict[tuple[str, str], list[Judged]] = defaultdict(list)
    for one in judged:
        series[one.row.group, one.row.metric].append(one)
    found = []
    for some in series.values():
        found += _of_series(sorted(some, key=lambda one: one.row.at), bucket, until)
    return found


def _of_series(rows: list[Judged], bucket: int, until: int | None) -> list[Found]:
    found: list[Found] = []
    start: Judged | None = None  # the first bucket of the open anomaly
    run: list[Judged] = []  # buckets in a row that are beyond the range, or back
    seen = rows[0].row.at
    for one in rows:
        if start is not None and one.row.at - seen >= DAY_MS:
            found.append(_silence(seen, start, rows))
            start, run = None, []
        seen = one.row.at + bucket
        if run and one.row.at - (run[-1].row.at + bucket) > 12 * bucket:
            run = []
        if start is None:
            beyond = one.score is not None and abs(one.score) >= 4
            same = run and run[-1].score is not None and one.score is not None and run[-1].score * one.score > 0
            run = [*(run if same else []), one] if beyond else []
            if len(run) == 3:
                start, run = run[0], []
                found.append(_event("started", one, start, None, rows, bucket))
        else:
            run = [*run, one] if _is_back(one, start) else []
            if len(run) == 3:
                found.append(_event("ended", one, start, run[0].row.at, rows, bucket))
                start, run = None, []
    if start is not None and until is not None and until - seen >= DAY_MS:
        found.append(_silence(seen, start, rows))
    return found


def _silence(seen: int, start: Judged, rows: list[Judged]) -> Found:
    """The end of an anomaly for lack of buckets since `seen`."""
    assert start.score is not None
    values = [row.row.value for row in rows if start.row.at <= row.row.at < seen]
    worst = max(values) if start.score > 0 else min(values)
    return Found(start.row.group, start.row.metric, "ended", seen + DAY_MS, start.row.at, seen, worst)


def _is_back(one: Judged, start: Judged) -> bool:
    assert start.score is not None
    if start.score > 0:
        within = one.row.value <= start.high + start.spread
    else:
        within = one.row.value >= start.low - start.spread
    if within or one.score is None:
        return within
    inside = one.score * math.copysign(1, start.score) < 1
    return inside and (one.basis in (WEEK, DAY) or one.row.at - start.row.at > 7 * 24 * HOUR)


def _event(event: str, one: Judged, start: Judged, end: int | None, rows: list[Judged], bucket: int) -> Found:
    assert start.score is not None
    until = one.row.at + bucket
    values = [row.row.value for row in rows if start.row.at <= row.row.at < (until if end is None else end)]
    worst = max(values) if start.score > 0 else min(values)
    return Found(one.row.group, one.row.metric, event, until, start.row.at, end, worst)
