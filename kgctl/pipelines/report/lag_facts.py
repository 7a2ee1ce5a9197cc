"""Lag as a map of groups over time, and at the last point: sums over partitions, maxima over time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgctl.pipelines.report.rows import GroupNow, LagMap

MAX_GROUPS, MAX_BINS, MAX_NOW = 30, 96, 20
# The width of the only bin, if there is one point in time.
LONE_BIN_MS = 60_000

Read = Callable[[Sequence[str]], Iterator[pa.Table]]


@dataclass(frozen=True, slots=True)
class LagFacts:
    """`every` has each group at its last known point. `lag_ms` by group, topic and partition with lag, at that point.

    `step_ms`: the usual distance between points in time, 0 if there is one point.
    """

    every: dict[str, GroupNow]
    period_ms: tuple[int, ...]
    lag_map: LagMap | None
    now: tuple[GroupNow, ...]
    more_now: int
    behind_groups: int
    lag_ms: dict[tuple[str, str, int], int | None]
    step_ms: int = 0


def lag_facts(read: Read) -> LagFacts:
    """`read` yields the files of f_lag with the columns it is given; it is called twice."""
    sums = _sums(read)
    if not sums.num_rows:
        return LagFacts({}, (), None, (), 0, 0, {})
    last_of = sums.group_by("group").aggregate([("at", "max")])
    now, lag_ms = _now(read, last_of)
    behind = sorted((group for group in now if group.behind), key=lambda one: (-(one.lag or 0), one.group))
    return LagFacts(
        every={one.group: one for one in now},
        period_ms=(pc.min(sums["at"]).as_py(), pc.max(sums["at"]).as_py()),
        lag_map=_map(sums),
        now=tuple(behind[:MAX_NOW]),
        more_now=max(0, len(behind) - MAX_NOW),
        behind_groups=len(behind),
        lag_ms=lag_ms,
        step_ms=_usual_step(np.unique(sums["at"].to_numpy())),
    )


def _sums(read: Read) -> pa.Table:
    """One row per group and time: the sum of the known lag."""
    parts = [
        table.group_by(["group", "at"]).aggregate([("lag", "sum")]).rename_columns(["group", "at", "lag"])
        for table in read(["group", "at", "lag"])
    ]
    if not parts:
        return pa.table(
            {"group": pa.array([], pa.string()), "at": pa.array([], pa.int64()), "lag": pa.array([], pa.int64())}
        )
    whole = pa.concat_tables(parts)
    return whole.group_by(["group", "at"]).aggregate([("lag", "sum")]).rename_columns(["group", "at", "lag"])


def _now(read: Read, last_of: pa.Table) -> tuple[list[GroupNow], dict[tuple[str, str, int], int | None]]:
    names, last = last_of["group"].combine_chunks(), last_of["at_max"].combine_chunks()
    last_rows = []
    for table in read(["group", "topic", "part", "at", "lag", "lag_ms", "consume_rate", "produce_rate", "eta_s"]):
        own_last = pc.take(last, pc.index_in(table["group"], value_set=names))
        last_rows.append(table.filter(pc.equal(table["at"], own_last)))
    rows = pa.concat_tables(last_rows)
    behind = pc.fill_null(pc.greater(rows["lag"], 0), False)
    endless = pc.and_(behind, pc.is_null(rows["eta_s"]))
    has_rates = pc.and_(pc.is_valid(rows["consume_rate"]), pc.is_valid(rows["produce_rate"]))
    for name, flags in (("behind", behind), ("endless", endless), ("grows", pc.and_(endless, has_rates))):
        rows = rows.append_column(name, flags.cast(pa.int64()))
    sums = ["lag", "consume_rate", "produce_rate", "behind", "endless", "grows"]
    of_groups = rows.group_by("group").aggregate(
        [("part", "count"), ("at", "max"), ("lag_ms", "max"), ("eta_s", "max"), *((name, "sum") for name in sums)]
    )
    groups = [
        GroupNow(
            group=row["group"],
            at_ms=row["at_max"],
            partitions=row["part_count"],
            behind=row["behind_sum"],
            lag=row["lag_sum"],
            lag_ms=row["lag_ms_max"],
            consume_rate=row["consume_rate_sum"],
            produce_rate=row["produce_rate_sum"],
            # Unknown if it is unknown for one partition.
            eta_s=None if row["endless_sum"] else row["eta_s_max"],
            grows=row["grows_sum"],
        )
        for row in of_groups.to_pylist()
    ]
    late = rows.filter(behind).select(["group", "topic", "part", "lag_ms"])
    return groups, {(row["group"], row["topic"], row["part"]): row["lag_ms"] for row in late.to_pylist()}


def _map(sums: pa.Table) -> LagMap:
    """The groups with the highest lag at any time, highest first."""
    peaks = sums.group_by("group").aggregate([("lag", "max")])
    order = pc.sort_indices(peaks, sort_keys=[("lag_max", "descending"), ("group", "ascending")])
    groups = peaks["group"].take(order[:MAX_GROUPS])
    shown = sums.filter(pc.is_in(sums["group"], value_set=groups.combine_chunks()))
    edges = _edges(np.unique(sums["at"].to_numpy()))
    rows = np.asarray(pc.index_in(shown["group"], value_set=groups.combine_chunks()))
    bins = np.clip(np.searchsorted(edges, shown["at"].to_numpy(), side="right") - 1, 0, len(edges) - 2)
    greatest: np.ndarray = np.full((len(groups), len(edges) - 1), -1, dtype=np.int64)
    np.maximum.at(greatest, (rows, bins), pc.fill_null(shown["lag"], -1).to_numpy())
    return LagMap(
        groups=tuple(groups.to_pylist()),
        edges_ms=tuple(int(edge) for edge in edges),
        lag=tuple(tuple(None if lag < 0 else int(lag) for lag in row) for row in greatest),
        more_groups=peaks.num_rows - len(groups),
    )


def _usual_step(times: np.ndarray) -> int:
    return int(np.median(np.diff(times))) if len(times) > 1 else 0


def _edges(times: np.ndarray) -> np.ndarray:
    """Bins of equal width, with each point in the middle of a separate bin unless that gives too many."""
    if len(times) == 1:
        return np.array([times[0] - LONE_BIN_MS // 2, times[0] + LONE_BIN_MS // 2])
    span = int(times[-1] - times[0])
    step = max(float(np.median(np.diff(times))), span / (MAX_BINS - 1))
    count = max(2, min(MAX_BINS, round(span / step) + 1))
    width = span / (count - 1)
    return np.round(times[0] - width / 2 + width * np.arange(count + 1)).astype(np.int64)
