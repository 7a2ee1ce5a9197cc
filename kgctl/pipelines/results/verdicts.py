"""The verdicts of the newest evaluation: one per group and table, the worst of its partitions. Needs pyarrow."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgctl.pipelines.results.tables import OK, UNKNOWN, rank_of
from kgctl.pipelines.schemas.model import Table
from kgctl.pipelines.tables.newest import newest_rows

_DETAILS = ("topic", "part", "lag", "eta_s", "complete", "reasons")
# A record with more partitions could be too large for a topic.
MAX_PARTITIONS = 100


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict about a group at `at_ms`, ms since 1970.

    `partitions` counts those that were judged, `by_status` those of each status. `lag` is the sum of what is known, None if
    nothing is. `details` are the columns of the partitions that are not OK, worst first, at most MAX_PARTITIONS.
    """

    table: str
    group: str
    at_ms: int
    status: str
    partitions: int
    by_status: dict[str, int]
    lag: int | None
    details: tuple[dict[str, Any], ...]

    @property
    def unhealthy(self) -> int:
        return self.partitions - self.by_status.get(OK, 0)

    @property
    def is_fault(self) -> bool:
        """Whether somebody should act. UNKNOWN is none: the partitions of a deleted topic stay unknown."""
        return self.status not in (OK, UNKNOWN)


def read_verdicts(out: Path, table: Table) -> list[Verdict]:
    """The newest verdict about each group, by name. Raises Damaged."""
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
        partitions=len(rows),
        by_status=dict(Counter(row["status"] for row in rows)),
        lag=sum(lags) if lags else None,
        details=tuple(bad[:MAX_PARTITIONS]),
    )
