"""A notice as a JSON object, the same for topics and webhooks."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from kgctl.pipelines.results.notices import Notice
from kgctl.pipelines.results.tables import OK


def document(notice: Notice, cluster: str) -> dict[str, Any]:
    """Times are in UTC with milliseconds. `unhealthy_more` counts the partitions that `unhealthy` leaves out."""
    one, entry = notice.verdict, notice.entry
    return {
        "id": notice.id,
        "table": one.table,
        "cluster": cluster,
        "group": one.group,
        "status": one.status,
        "previous": entry.previous,
        "since": moment(entry.since_ms),
        "at": moment(one.at_ms),
        "repeated": entry.number,
        "resolved": one.status == OK,
        "lag": one.lag,
        "judged": one.judged,
        "unhealthy_count": one.unhealthy,
        "unhealthy": [
            {"partition" if name == "part" else name: value for name, value in row.items()} for row in one.details
        ],
        "unhealthy_more": max(0, one.unhealthy - len(one.details)),
    }


def moment(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
