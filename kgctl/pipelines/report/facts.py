"""Reads the tables, file by file, and aggregates them to the few thousand values that a report shows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from kgctl.model.health import EVALUATED, Health
from kgctl.pipelines.report.addresses import page_of
from kgctl.pipelines.report.lag_facts import LagFacts, lag_facts
from kgctl.pipelines.report.ranking import RANKS, rank
from kgctl.pipelines.report.rows import (
    Facts,
    GroupRow,
    HealthCount,
    HealthSummary,
    PartitionHealth,
    Rebalance,
    Rebalances,
    WorstGroup,
)
from kgctl.pipelines.schemas import TABLES
from kgctl.pipelines.schemas.groups import HEALTH, LAG, REBALANCES
from kgctl.pipelines.tables.arrow import read_file
from kgctl.pipelines.tables.formats import open_table
from kgctl.pipelines.tables.manifest import TableFolder
from kgctl.pipelines.tables.newest import measured_ms, newest_us

MAX_PARTITIONS = 20
MAX_REBALANCES = 2_000
MAX_BUSIEST = 20
# Columns of f_rebalance that the report does not show; older files lack the second one.
UNREAD = ("duration_source", "group_type")


def read_facts(out_dir: Path) -> Facts:
    """Read all tables in the folder. Raises Damaged, Newer."""
    folders = {name: open_table(out_dir / name) for name in TABLES}
    with ExitStack() as files_stay:
        for folder in folders.values():
            files_stay.enter_context(folder.reading())
        return _read_facts(out_dir, folders)


def _read_facts(out_dir: Path, folders: dict[str, TableFolder]) -> Facts:
    lag = lag_facts(lambda columns: _read(folders[LAG.name], columns))
    measured = measured_ms(out_dir, HEALTH)
    health = _health(folders[HEALTH.name], lag.lag_ms, measured)
    rebalances, rebalanced = _rebalances(folders[REBALANCES.name])
    evaluated = [] if health is None else [health.at_ms]
    times = [time for time in (*lag.period_ms, *_period(rebalances), *evaluated) if time is not None]
    worst = _worst_of(folders[HEALTH.name])
    groups = lag.every.keys() | rebalanced | worst.keys()
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
        every=_every(groups, worst, lag, rebalances, measured),
        lag_step_ms=lag.step_ms,
        lag_period_ms=lag.period_ms,
    )


def rows_after(folder: TableFolder, columns: Sequence[str], after_ms: int | None) -> Iterator[pa.Table]:
    """The files with rows whose `at` is after that time, if one is given; one at a time, with timestamps as whole ms."""
    return _read(folder, columns, after_ms)


def _read(folder: TableFolder, columns: Sequence[str], after_ms: int | None = None) -> Iterator[pa.Table]:
    """One file at a time, with timestamps as whole ms."""
    for path, file in folder.located():
        if after_ms is not None and (newest_us(path, "at") or 0) // 1000 <= after_ms:
            continue
        table = read_file(path, TABLES[folder.folder.name], file.schema, columns)
        for number, field in enumerate(table.schema):
            if pa.types.is_timestamp(field.type):
                in_ms = table.column(number).cast(pa.timestamp("ms"), safe=False).cast(pa.int64())
                table = table.set_column(number, field.name, in_ms)
        yield table


def _worst_of(folder: TableFolder) -> dict[str, tuple[int, str]]:
    """Of each group that was ever judged: the time of its last evaluation, and its worst status then."""
    found: dict[str, tuple[int, str]] = {}
    for table in _read(folder, ["group", "at", "status"]):
        newest = table.group_by("group").aggregate([("at", "max")])
        of_row = pc.index_in(table["group"], value_set=newest["group"].combine_chunks())
        is_newest = pc.equal(table["at"], pc.take(newest["at_max"].combine_chunks(), of_row))
        each = table.filter(is_newest).group_by(["group", "at", "status"]).aggregate([])
        for group, at, status in zip(*(each[name].to_pylist() for name in ("group", "at", "status")), strict=True):
            before = found.get(group)
            if before is None or (at, -rank(status)) > (before[0], -rank(before[1])):
                found[group] = at, status
    return found


def _every(
    groups: Iterable[str],
    worst: dict[str, tuple[int, str]],
    lag: LagFacts,
    rebalances: Rebalances | None,
    measured: int | None,
) -> tuple[GroupRow, ...]:
    """`measured`: the time of the newest evaluation, which may have found no group; None: that of the newest row."""
    counts = {} if rebalances is None else rebalances.counts
    times = [*(at for at, _ in worst.values()), measured]
    newest = max((at for at in times if at is not None), default=None)
    rows = []
    for group in groups:
        at, status = worst.get(group, (None, None))
        # A group that the newest evaluation lacks has no commits any more.
        rows.append(
            GroupRow(
                group, page_of(group), status if at == newest else None, lag.every.get(group), counts.get(group, 0)
            )
        )
    return tuple(sorted(rows, key=_attention))


def _attention(row: GroupRow) -> tuple[int, int, str]:
    return rank(row.status), -((row.now.lag if row.now else None) or 0), row.group


def _health(
    folder: TableFolder, lag_ms: dict[tuple[str, str, int], int | None], measured: int | None
) -> HealthSummary | None:
    """The last evaluation, which covers all partitions; None if it found none."""
    last = max((pc.max(table["at"]).as_py() for table in _read(folder, ["at"]) if table.num_rows), default=None)
    if last is None or (measured is not None and last < measured):
        return None
    columns = ["group", "topic", "part", "at", "status", "complete", "lag", "reasons"]
    tables = [table.filter(pc.equal(table["at"], last)) for table in _read(folder, columns)]
    last_rows = pa.concat_tables(tables)
    worst_of: dict[str, int] = {}
    partitions, unhealthy_of, lag_of = Counter[str](), Counter[str](), Counter[str]()
    by_status = Counter[str]()
    for group, status, lag in zip(*(last_rows[name].to_pylist() for name in ("group", "status", "lag")), strict=True):
        worst_of[group] = min(worst_of.get(group, len(RANKS)), rank(status))
        partitions[group] += 1
        by_status[status] += 1
        lag_of[group] += lag or 0
        unhealthy_of[group] += status != Health.OK
    worst = min(worst_of, key=lambda group: (worst_of[group], -lag_of[group], -unhealthy_of[group], group))
    worst_partitions = _worst_partitions(last_rows.filter(pc.not_equal(last_rows["status"], str(Health.OK))), lag_ms)
    groups_by_status = Counter(EVALUATED[rank] for rank in worst_of.values())
    return HealthSummary(
        at_ms=last,
        groups=len(worst_of),
        healthy=groups_by_status[Health.OK],
        counts=tuple(HealthCount(status, by_status[status], groups_by_status[status]) for status in EVALUATED),
        worst=None
        if EVALUATED[worst_of[worst]] == Health.OK
        else WorstGroup(worst, EVALUATED[worst_of[worst]], unhealthy_of[worst], partitions[worst], lag_of[worst]),
        worst_partitions=worst_partitions,
        more_unhealthy=sum(unhealthy_of.values()) - len(worst_partitions),
    )


def _worst_partitions(rows: pa.Table, lag_ms: dict[tuple[str, str, int], int | None]) -> tuple[PartitionHealth, ...]:
    ranks = pc.index_in(rows["status"], value_set=pa.array(list(RANKS)))
    known = pc.fill_null(rows["lag"], -1)
    rows = rows.append_column("rank", ranks).append_column("known", known)
    order = [
        ("rank", "ascending"),
        ("known", "descending"),
        *((name, "ascending") for name in ("group", "topic", "part")),
    ]
    worst = rows.take(pc.sort_indices(rows, sort_keys=order)[:MAX_PARTITIONS])
    return tuple(
        PartitionHealth(
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
    columns = [column.name for column in REBALANCES.columns if column.name not in UNREAD]
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
        newest = newest.take(pc.sort_indices(newest, sort_keys=order)[:MAX_REBALANCES])
    if newest is None or not newest.num_rows:
        return None, set()
    return Rebalances(
        count=counts.total(),
        groups=len(counts),
        without_duration=without_duration,
        newest=tuple(_rebalance(row) for row in reversed(newest.to_pylist())),
        busiest=tuple(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:MAX_BUSIEST]),
        counts=dict(counts),
    ), set(counts)


def _rebalance(row: dict[str, object]) -> Rebalance:
    renamed = {"started": "started_ms", "ended": "ended_ms"}
    return Rebalance(**{renamed.get(name, name): value for name, value in row.items()})  # type: ignore[arg-type]


def _period(rebalances: Rebalances | None) -> list[int | None]:
    if rebalances is None:
        return []
    return [time for one in rebalances.newest for time in (one.started_ms, one.ended_ms)]


def _cluster(out_dir: Path) -> str | None:
    """The cluster id that the jobs noted beside their checkpoints; None if these are elsewhere."""
    found = set()
    for path in sorted(out_dir.glob("_checkpoints/*/kgctl.json")):
        try:
            owner = json.loads(path.read_text())
        except ValueError:
            continue
        if isinstance(owner, dict) and owner.get("cluster_id"):
            found.add(str(owner["cluster_id"]))
    return ", ".join(sorted(found)) or None
