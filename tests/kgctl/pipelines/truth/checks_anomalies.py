"""Compares f_expected and anomalies with plain Python, from the rows of the tables that the job reads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from statistics import fmean
from typing import Any

import pytest

from tests.kgctl.pipelines.transforms import oracle_anomalies as oracle
from tests.kgctl.pipelines.transforms.oracle_anomalies import Observed
from tests.kgctl.pipelines.truth.world import Tables, by_key, ms

STEPS = 5
LAG, COMMIT_RATE, REBALANCES = "lag", "commit rate", "rebalances"
LAG_FLOOR = 10.0
# Of a window with fewer of its records left, commits are not counted.
COMPLETE = 0.5


def check_expected(tables: Tables) -> None:
    found, bucket_ms = by_key(tables.of_users("f_expected"), "group", "metric", "at"), STEPS * tables.step_ms
    until_ms = max(ms(row["until"]) or 0 for row in found.values())
    last_ms = max(ms(row["at"]) or 0 for row in tables.rows("f_lag"))
    assert until_ms <= last_ms < until_ms + bucket_ms + tables.step_ms
    wanted = {(one.group, one.metric, one.at): one for one in observed(tables, until_ms)}
    seen = {(group, metric, ms(at) or 0): row for (group, metric, at), row in found.items()}
    assert seen.keys() <= wanted.keys()
    # Whether commits can be counted was judged by what was known then.
    assert {group for group, metric, _ in wanted.keys() - seen.keys() if metric == COMMIT_RATE} <= incomplete(tables)
    assert {metric for _, metric, _ in wanted.keys() - seen.keys()} <= {COMMIT_RATE}
    for one in oracle.judge((wanted[key] for key in seen), bucket_ms):
        row = seen[one.row.group, one.row.metric, one.row.at]
        assert ms(row["until"]) == one.row.at + bucket_ms
        assert row["value"] == pytest.approx(one.row.value)
        assert row["basis"] == one.basis
        shown = tuple(row[name] for name in ("observations", "median", "low", "high", "spread", "score"))
        if one.basis is None:
            assert shown == (None,) * 6
        else:
            assert shown == pytest.approx((one.observations, one.middle, one.low, one.high, one.spread, one.score))


def check_anomalies(tables: Tables) -> None:
    """With a history of minutes, from what was usual a moment ago; see the weeks in the test for more."""
    bucket_ms = STEPS * tables.step_ms
    seen = {(row["group"], row["metric"], ms(row["at"]) or 0) for row in tables.of_users("f_expected")}
    until_ms = max(ms(row["until"]) or 0 for row in tables.rows("f_expected"))
    rows = [one for one in observed(tables, until_ms) if (one.group, one.metric, one.at) in seen]
    wanted = oracle.anomalies(oracle.judge(rows, bucket_ms), bucket_ms, until_ms)
    found = by_key(tables.of_users("anomalies"), "group", "metric", "event", "at")
    assert {
        (*key[:3], ms(key[3])): (ms(row["since"]), ms(row["ended"]), row["worst"]) for key, row in found.items()
    } == {(one.group, one.metric, one.event, one.at): (one.since, one.end, pytest.approx(one.worst)) for one in wanted}
    assert all(row["reason"] for row in found.values())


def observed(tables: Tables, until_ms: int) -> list[Observed]:
    """What each group did in each bucket, from the first sign of it on. No group of the traffic is silent for a day."""
    bucket_ms = STEPS * tables.step_ms
    commits: dict[tuple[str, int], int] = defaultdict(int)
    rebalances: dict[tuple[str, int], int] = defaultdict(int)
    for row in tables.of_users("f_commit"):
        commits[row["group"], bucket_of(row["w_start"], bucket_ms)] += row["commits"]
    for row in tables.of_users("f_rebalance"):
        rebalances[row["group"], bucket_of(row["ended"], bucket_ms)] += 1
    found = list(_lag(tables, until_ms))
    committing = {group for group, _ in commits}
    for group in committing | {group for group, _ in rebalances}:
        first = min(at for name, at in [*commits, *rebalances] if name == group)
        for at in range(first, until_ms, bucket_ms):
            seconds = bucket_ms / 1000
            if group in committing:
                found.append(Observed(group, COMMIT_RATE, at, commits[group, at] / seconds, 1 / seconds))
            found.append(Observed(group, REBALANCES, at, float(rebalances[group, at]), 1.0))
    return found


def _lag(tables: Tables, until_ms: int) -> Iterator[Observed]:
    bucket_ms = STEPS * tables.step_ms
    points: dict[Any, list[Any]] = defaultdict(list)
    for row in tables.of_users("f_lag"):
        points[row["group"], row["at"]].append(row)
    buckets: dict[tuple[str, int], list[tuple[int, float | None]]] = defaultdict(list)
    for (group, at), rows in points.items():
        rates = [row["produce_rate"] for row in rows if row["produce_rate"] is not None]
        buckets[group, bucket_of(at, bucket_ms)].append(
            (sum(row["lag"] for row in rows), sum(rates) if rates else None)
        )
    for (group, at), some in buckets.items():
        rates = [rate for _, rate in some if rate is not None]
        if at < until_ms:
            floor = max(LAG_FLOOR, LAG_FLOOR * fmean(rates)) if rates else LAG_FLOOR
            yield Observed(group, LAG, at, float(max(lag for lag, _ in some)), floor)


def incomplete(tables: Tables) -> set[str]:
    return {
        row["group"] for row in tables.rows("f_commit") if row["complete"] is not None and row["complete"] < COMPLETE
    }


def bucket_of(moment: Any, bucket_ms: int) -> int:
    at_ms = ms(moment) or 0
    return at_ms - at_ms % bucket_ms
