"""The facts of single groups, for their pages: of all that are asked for, in one pass over each table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kgctl.pipelines.report.ranking import rank
from kgctl.pipelines.report.rows import GroupFacts, LagMap, PartitionRow, Rebalance, Rebalances

MAX_PARTITIONS, MAX_LAG_ROWS, MAX_REBALANCES, MAX_BINS = 500, 30, 200, 96
_WIDTHS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400)
_KEY = ["group", "topic", "part"]
_VALUES = ("lag", "lag_ms", "consume_rate", "produce_rate", "eta_s")

Rows = Callable[[Sequence[str]], Iterator[pa.Table]]
Row = dict[str, Any]


def bin_width(period_ms: Sequence[int], step_ms: int) -> int:
    """In ms: a round number, so that the bins of a group stay where they are while the period grows."""
    span = period_ms[-1] - period_ms[0] if period_ms else 0
    least = max(step_ms, span / (MAX_BINS - 1))
    days = -(-int(least) // 86_400_000) * 86_400_000
    return next((width * 1000 for width in _WIDTHS_S if width * 1000 >= least), days)


def group_facts(
    groups: Collection[str], lag: Rows, health: dict[str, list[Row]], rebalances: Rows, width_ms: int
) -> Iterator[GroupFacts]:
    """`lag` and `rebalances` yield the files of f_lag and f_rebalance; `health` is the newest evaluation, by group."""
    wanted = pa.array(sorted(groups), pa.string())
    now, maps = _lag(lag, wanted, width_ms)
    moves = _rebalances(rebalances, wanted)
    for group in sorted(groups):
        at_ms, rows = now.get(group, (None, []))
        partitions = _partitions(health.get(group, []), rows)
        statuses = [row["status"] for row in health.get(group, [])]
        yield GroupFacts(
            group=group,
            status=min(statuses, key=rank, default=None),
            at_ms=at_ms,
            partitions=partitions,
            lag_map=maps.get(group),
            rebalances=moves.get(group),
        )


def _partitions(judged: Iterable[Row], lags: Iterable[Row]) -> tuple[PartitionRow, ...]:
    health = {(row["topic"], row["part"]): row for row in judged}
    lag = {(row["topic"], row["part"]): row for row in lags}
    rows = []
    for key in health.keys() | lag.keys():
        verdict, values = health.get(key, {}), lag.get(key, {})
        rows.append(
            PartitionRow(
                topic=key[0],
                part=key[1],
                status=verdict.get("status"),
                complete=verdict.get("complete"),
                **{name: values.get(name) for name in _VALUES} | ({} if values else {"lag": verdict.get("lag")}),
                reasons=tuple(verdict.get("reasons") or ()),
            )
        )
    return tuple(sorted(rows, key=lambda row: (rank(row.status), -(row.lag or 0), row.topic, row.part)))


def _lag(read: Rows, groups: pa.Array, width_ms: int) -> tuple[dict[str, tuple[int, list[Row]]], dict[str, LagMap]]:
    """The partitions of each group at its last point, and its lag over time."""
    last: dict[str, tuple[int, list[pa.Table]]] = {}
    binned = []
    for table in read([*_KEY, "at", *_VALUES]):
        mine = table.filter(pc.is_in(table["group"], value_set=groups))
        if not mine.num_rows:
            continue
        bins = pa.array(mine["at"].to_numpy() // width_ms)
        binned.append(_greatest(mine.select([*_KEY, "lag"]).append_column("bin", bins)))
        newest = mine.group_by("group").aggregate([("at", "max")])
        at = pc.take(
            newest["at_max"].combine_chunks(), pc.index_in(mine["group"], value_set=newest["group"].combine_chunks())
        )
        for row in mine.filter(pc.equal(mine["at"], at)).to_pylist():
            group, at_ms = row["group"], row["at"]
            if group not in last or last[group][0] < at_ms:
                last[group] = at_ms, []
            if last[group][0] == at_ms:
                last[group][1].append(row)
    if not binned:
        return {}, {}
    return last, _maps(_greatest(pa.concat_tables(binned)), width_ms)


def _greatest(rows: pa.Table) -> pa.Table:
    found = rows.group_by([*_KEY, "bin"]).aggregate([("lag", "max")])
    return found.select([*_KEY, "bin", "lag_max"]).rename_columns([*_KEY, "bin", "lag"])


def _maps(binned: pa.Table, width_ms: int) -> dict[str, LagMap]:
    """Of each group, the partitions with the highest lag at any time, highest first."""
    binned = binned.sort_by([("group", "ascending")])
    names, starts = np.unique(binned["group"].to_numpy(), return_index=True)
    columns = [binned[name].to_pylist() for name in ("topic", "part", "bin", "lag")]
    found = {}
    for name, start, end in zip(names, starts, [*starts[1:], binned.num_rows], strict=True):
        found[str(name)] = _map(list(zip(*(column[start:end] for column in columns), strict=True)), width_ms)
    return found


def _map(cells: list[tuple[str, int, int, int | None]], width_ms: int) -> LagMap:
    first, last = min(cell[2] for cell in cells), max(cell[2] for cell in cells)
    of_partition: defaultdict[tuple[str, int], list[int | None]] = defaultdict(lambda: [None] * (last - first + 1))
    for topic, part, number, lag in cells:
        of_partition[topic, part][number - first] = lag
    order = sorted(
        of_partition, key=lambda key: (-max((lag for lag in of_partition[key] if lag is not None), default=-1), *key)
    )
    shown = order[:MAX_LAG_ROWS]
    return LagMap(
        groups=tuple(f"{topic}-{part}" for topic, part in shown),
        edges_ms=tuple(width_ms * number for number in range(first, last + 2)),
        lag=tuple(tuple(of_partition[key]) for key in shown),
        more_groups=len(order) - len(shown),
    )


def _rebalances(read: Rows, groups: pa.Array) -> dict[str, Rebalances]:
    rows: defaultdict[str, list[Row]] = defaultdict(list)
    without: defaultdict[str, int] = defaultdict(int)
    counts: defaultdict[str, int] = defaultdict(int)
    columns = [name for name in Rebalance.__dataclass_fields__ if name not in ("started_ms", "ended_ms")]
    for table in read([*columns, "started", "ended"]):
        mine = table.filter(pc.is_in(table["group"], value_set=groups))
        for name in ("joined", "left"):
            number = mine.schema.get_field_index(name)
            mine = mine.set_column(number, name, pc.list_value_length(mine[name]))
        for row in mine.to_pylist():
            group = row["group"]
            counts[group] += 1
            without[group] += row["duration_ms"] is None
            rows[group].append(row)
            if len(rows[group]) > 2 * MAX_REBALANCES:
                rows[group] = _newest(rows[group])
    return {
        group: Rebalances(
            count=counts[group],
            groups=1,
            without_duration=without[group],
            newest=tuple(_rebalance(row) for row in reversed(_newest(some))),
            busiest=((group, counts[group]),),
        )
        for group, some in rows.items()
    }


def _newest(rows: list[Row]) -> list[Row]:
    """Newest first."""
    return sorted(rows, key=lambda row: (-row["ended"], -(row["generation"] or 0)))[:MAX_REBALANCES]


def _rebalance(row: Row) -> Rebalance:
    renamed = {"started": "started_ms", "ended": "ended_ms"}
    return Rebalance(**{renamed.get(name, name): value for name, value in row.items()})
