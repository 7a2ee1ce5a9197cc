"""The verdicts of the newest evaluation: one per group and table, the worst of its partitions. Needs pyarrow."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from kgctl.pipelines.results.tables import OK, UNKNOWN, has_events, rank_of
from kgctl.pipelines.schemas.model import Table
from kgctl.pipelines.tables.arrow import read_file
from kgctl.pipelines.tables.formats import open_table
from kgctl.pipelines.tables.newest import newest_rows

_DETAILS = ("topic", "part", "lag", "eta_s", "complete", "reasons")
# A record with more partitions could be too large for a topic.
MAX_PARTITIONS = 100
STARTED = "started"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict about a group at `at_ms`, ms since 1970.

    `judged` counts the partitions that were judged, or the metrics of a table with events; `by_status` those of each status.
    `lag` is the sum of what is known, None if nothing is. `details` are the columns of what is not OK, worst first, at most
    MAX_PARTITIONS.
    """

    table: str
    group: str
    at_ms: int
    status: str
    judged: int
    by_status: dict[str, int]
    lag: int | None
    details: tuple[dict[str, Any], ...]

    @property
    def unhealthy(self) -> int:
        return self.judged - self.by_status.get(OK, 0)

    @property
    def is_fault(self) -> bool:
        """Whether somebody should act. UNKNOWN is none: the partitions of a deleted topic stay unknown."""
        return self.status not in (OK, UNKNOWN)


def read_verdicts(out: Path, table: Table) -> list[Verdict]:
    """The newest verdict about each group, by name. Raises Damaged, Newer."""
    if has_events(table):
        return _from_events(out, table)
    found = newest_rows(out, table, ["group", "status", *_DETAILS])
    if found is None:
        return []
    at_ms, rows = found
    of_group: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows.to_pylist():
        of_group[row.pop("group")].append(row)
    return [_verdict(table, group, at_ms, of_group[group]) for group in sorted(of_group)]


def _verdict(table: Table, group: str, at_ms: int, rows: list[dict[str, Any]]) -> Verdict:
    ranks = {status: rank_of(table, status) for status in {row["status"] for row in rows}}
    bad = [row for row in rows if row["status"] != OK]
    bad.sort(
        key=lambda row: (ranks[row["status"]], -(row.get("lag") or 0), row.get("topic") or "", row.get("part") or 0)
    )
    lags = [row["lag"] for row in rows if row.get("lag") is not None]
    return Verdict(
        table=table.name,
        group=group,
        at_ms=at_ms,
        status=min(ranks, key=lambda status: (ranks[status], status)),
        judged=len(rows),
        by_status=dict(Counter(row["status"] for row in rows)),
        lag=sum(lags) if lags else None,
        details=tuple(bad[:MAX_PARTITIONS]),
    )


def _from_events(out: Path, table: Table) -> list[Verdict]:
    """Groups without an event have no verdict."""
    of_group: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in last_events(out, table):
        of_group[row.pop("group")].append(row)
    found = []
    for group in sorted(of_group):
        rows = of_group[group]
        bad = sorted((row for row in rows if row["event"] == STARTED), key=lambda row: str(row["metric"]))
        found.append(
            Verdict(
                table=table.name,
                group=group,
                at_ms=max(row["at"] for row in rows),
                status=table.verdicts[0] if bad else OK,
                judged=len(rows),
                by_status=dict(Counter(table.verdicts[0] if row["event"] == STARTED else OK for row in rows)),
                lag=None,
                details=tuple(
                    {"metric": row["metric"], "value": row["value"], "reasons": [row["reason"]]} for row in bad
                ),
            )
        )
    return found


def last_events(out: Path, table: Table) -> list[dict[str, Any]]:
    """The last event of each group and metric; times in ms since 1970. Raises Damaged, Newer."""
    last: dict[tuple[str, str], dict[str, Any]] = {}
    folder = open_table(out / table.name)
    with folder.reading():
        for path, file in folder.located():
            rows = read_file(path, table, file.schema, ["group", "metric", "event", "at", "value", "reason"])
            at = rows["at"].cast(pa.timestamp("ms"), safe=False).cast(pa.int64())
            for row in rows.set_column(rows.schema.get_field_index("at"), "at", at).to_pylist():
                key = row["group"], row["metric"]
                # An anomaly may end and another one start at the same time.
                if key not in last or (row["at"], row["event"]) >= (last[key]["at"], last[key]["event"]):
                    last[key] = row
    return list(last.values())
