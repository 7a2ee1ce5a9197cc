"""Reads the tables, file by file, into the few thousand values that a report shows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as parquet

from kgctl.pipelines import schemas
from kgctl.pipelines.report.lag_facts import lag_facts
from kgctl.pipelines.report.rows import Facts, Health, Rebalance, Rebalances, Verdict, VerdictCount, WorstGroup
from kgctl.pipelines.tables.manifest import TableFolder

# Worst first.
STATUSES = ("STOPPED", "STALLED", "REWOUND", "LAGGING", "UNKNOWN", "OK")
MOST_BAD = 20
MOST_REBALANCES = 2_000
MOST_BUSY = 20


def read_facts(out_dir: Path) -> Facts:
    """Of all tables that are there. Raises Damaged."""
    folders = {name: TableFolder(out_dir / name) for name in schemas.TABLES}
    lag = lag_facts(lambda columns: _read(folders[schemas.LAG.name], columns))
    health = _health(folders[schemas.HEALTH.name], lag.lag_ms)
    rebalances, rebalanced = _rebalances(folders[schemas.REBALANCES.name])
    judged = [] if health is None else [health.at_ms]
    times = [time for time in (*lag.period_ms, *_period(rebalances), *judged) if time is not None]
    groups = lag.groups | rebalanced | _groups(folders[schemas.HEALTH.name])
    return Facts(
        rows={name: folder.rows() for name, folder in folders.items()},
        first_ms=min(times, default=None),
        last_ms=max(times, default=None),
        groups=len(groups),
        lag_map=lag.lag_map,
        now=lag.now,
        more_now=lag.more_now,
        behind_groups=lag.behind_groups,
        health=health,
        rebalances=rebalances,
        cluster=_cluster(out_dir),
    )


def _read(folder: TableFolder, columns: Sequence[str]) -> Iterator[pa.Table]:
    """A file at a time, timestamps as whole ms. Not by its folder, whose `date=` would be read as a column."""
    for path in folder.files():
        with parquet.ParquetFile(path) as file:
            table = file.read(columns=list(columns))
        for number, field in enumerate(table.schema):
            if pa.types.is_timestamp(field.type):
                in_ms = table.column(number).cast(pa.timestamp("ms"), safe=False).cast(pa.int64())
                table = table.set_column(number, field.name, in_ms)
        yield table


def _groups(folder: TableFolder) -> set[str]:
    return {name for table in _read(folder, ["group"]) for name in pc.unique(table["group"]).to_pylist()}


def _health(folder: TableFolder, lag_ms: dict[tuple[str, str, int], int | None]) -> Health | None:
    """By the last judgement: each one looks at all partitions."""
    last = max((pc.max(table["at"]).as_py() for table in _read(folder, ["at"]) if table.num_rows), default=None)
    if last is None:
        return None
    columns = ["group", "topic", "part", "at", "status", "complete", "lag", "reasons"]
    tables = [table.filter(pc.equal(table["at"], last)) for table in _read(folder, columns)]
    judged = pa.concat_tables(tables)
    worst_of: dict[str, int] = {}
    partitions, bad_of, lag_of = Counter[str](), Counter[str](), Counter[str]()
    by_status = Counter[str]()
    for group, status, lag in zip(*(judged[name].to_pylist() for name in ("group", "status", "lag")), strict=True):
        rank = _rank(status)
        worst_of[group] = min(worst_of.get(group, rank), rank)
        partitions[group] += 1
        by_status[status] += 1
        lag_of[group] += lag or 0
        bad_of[group] += status != "OK"
    worst = min(worst_of, key=lambda group: (worst_of[group], -lag_of[group], -bad_of[group], group))
    bad = _bad(judged.filter(pc.not_equal(judged["status"], "OK")), lag_ms)
    groups_by_status = Counter(STATUSES[rank] for rank in worst_of.values())
    return Health(
        at_ms=last,
        groups=len(worst_of),
        healthy=groups_by_status["OK"],
        counts=tuple(VerdictCount(status, by_status[status], groups_by_status[status]) for status in STATUSES),
        worst=None
        if STATUSES[worst_of[worst]] == "OK"
        else WorstGroup(worst, STATUSES[worst_of[worst]], bad_of[worst], partitions[worst], lag_of[worst]),
        bad=bad,
        more_bad=sum(bad_of.values()) - len(bad),
    )


def _rank(status: str) -> int:
    return STATUSES.index(status) if status in STATUSES else STATUSES.index("UNKNOWN")


def _bad(judged: pa.Table, lag_ms: dict[tuple[str, str, int], int | None]) -> tuple[Verdict, ...]:
    ranks = pc.index_in(judged["status"], value_set=pa.array(STATUSES))
    known = pc.fill_null(judged["lag"], -1)
    judged = judged.append_column("rank", ranks).append_column("known", known)
    order = [
        ("rank", "ascending"),
        ("known", "descending"),
        *((name, "ascending") for name in ("group", "topic", "part")),
    ]
    worst = judged.take(pc.sort_indices(judged, sort_keys=order)[:MOST_BAD])
    return tuple(
        Verdict(
            row["group"],
            row["topic"],
            row["part"],
            row["status"],
            row["complete"],
            row["lag"],
            lag_ms.get((row["group"], row["topic"], row["part"])),
            tuple(row["reasons"] or ()),
        )
        for row in worst.to_pylist()
    )


def _rebalances(folder: TableFolder) -> tuple[Rebalances | None, set[str]]:
    columns = [column.name for column in schemas.REBALANCES.columns if column.name != "duration_source"]
    counts, without_duration = Counter[str](), 0
    newest: pa.Table | None = None
    for table in _read(folder, columns):
        counts.update({pair["values"]: pair["counts"] for pair in pc.value_counts(table["group"]).to_pylist()})
        without_duration += table["duration_ms"].null_count
        for name in ("joined", "left"):
            number = table.schema.get_field_index(name)
            table = table.set_column(number, name, pc.list_value_length(table[name]))
        newest = table if newest is None else pa.concat_tables([newest, table])
        order = [("ended", "descending"), ("group", "ascending"), ("generation", "descending")]
        newest = newest.take(pc.sort_indices(newest, sort_keys=order)[:MOST_REBALANCES])
    if newest is None or not newest.num_rows:
        return None, set()
    return Rebalances(
        count=counts.total(),
        groups=len(counts),
        without_duration=without_duration,
        newest=tuple(_rebalance(row) for row in reversed(newest.to_pylist())),
        busiest=tuple(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:MOST_BUSY]),
    ), set(counts)


def _rebalance(row: dict[str, object]) -> Rebalance:
    renamed = {"started": "started_ms", "ended": "ended_ms"}
    return Rebalance(**{renamed.get(name, name): value for name, value in row.items()})  # type: ignore[arg-type]


def _period(rebalances: Rebalances | None) -> list[int | None]:
    if rebalances is None:
        return []
    return [time for one in rebalances.newest for time in (one.started_ms, one.ended_ms)]


def _cluster(out_dir: Path) -> str | None:
    """As the jobs noted it beside their checkpoints; None if those are elsewhere."""
    found = set()
    for path in sorted(out_dir.glob("_checkpoints/*/kgctl.json")):
        try:
            told = json.loads(path.read_text())
        except ValueError:
            continue
        if isinstance(told, dict) and told.get("cluster_id"):
            found.add(str(told["cluster_id"]))
    return ", ".join(sorted(found)) or None
