"""Synthetic weeks of groups: traffic with days, weekends, noise, deployments and a weekly job; and incidents on top."""

from __future__ import annotations

import math
from collections.abc import Iterator
from random import Random

from kgctl.pipelines.transforms.expected import COMMIT_RATE, LAG, REBALANCES
from tests.kgctl.pipelines.transforms.oracle_anomalies import Observed

START = 1_704_067_200_000  # a Monday, 00:00 UTC
BUCKET = 300_000
A_DAY = 288
A_WEEK = 7 * A_DAY


def healthy(group: str, seed: int, weeks: int, *, has_weekly_job: bool = False) -> Iterator[Observed]:
    """Three series of a group that is well. Its consumers are deployed three times a week, and pause at times."""
    random = Random(seed)
    peak, members = 10 ** random.uniform(1, 4), random.randrange(2, 20)
    weekend = random.uniform(0.2, 1)
    deployments = {
        week * A_WEEK + random.randrange(5) * A_DAY + random.randrange(108, 216)
        for week in range(weeks)
        for _ in range(3)
    }
    for number in range(weeks * A_WEEK):
        day, time = divmod(number % A_WEEK, A_DAY)
        rate = peak * (0.55 - 0.45 * math.cos(2 * math.pi * (time - 36) / A_DAY)) * (weekend if day >= 5 else 1)
        rate *= random.lognormvariate(0, 0.15)
        lag = rate * random.lognormvariate(0.5, 0.4)
        commits = members / 5 * random.uniform(0.95, 1.02)
        rebalances = float(random.random() < 0.004)
        if {number, number - 1} & deployments:
            lag, rebalances, commits = lag + rate * random.uniform(20, 90), float(random.randrange(2, 5)), commits * 0.6
        if random.random() < 0.003:
            lag += rate * random.uniform(5, 60)
        if has_weekly_job and day == 0 and 110 <= time < 110 + random.randrange(6, 9):
            lag += peak * random.uniform(300, 500)
        at = START + number * BUCKET
        yield Observed(group, LAG, at, float(round(lag)), max(10.0, 10 * rate))
        yield Observed(group, COMMIT_RATE, at, round(commits * 300) / 300, 1 / 300)
        yield Observed(group, REBALANCES, at, rebalances, 1.0)


def changed(rows: Iterator[Observed], metric: str, begin: int, end: int, change: object) -> Iterator[Observed]:
    """The rows with `change(buckets since begin, value)` for one metric from `begin` to before `end`, in buckets."""
    for row in rows:
        number = (row.at - START) // BUCKET
        if row.metric == metric and begin <= number < end:
            row = row._replace(value=change(number - begin, row.value))  # type: ignore[operator]
        yield row
