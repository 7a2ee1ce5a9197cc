"""The pages of groups. Only those of groups about which something changed are computed and written again.

OUT/report/pages.json has what the pages were made of. A group has changed if its health, its number of rebalances or its
partitions' offsets have: new points in time at which a group without lag neither reads nor gets records change nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kgctl.pipelines.report.group_facts import Row, Rows, bin_width, group_facts
from kgctl.pipelines.report.rows import Anomaly, Facts, GroupFacts
from kgctl.pipelines.results.verdicts import STARTED
from kgctl.pipelines.schemas.group_facts import ANOMALIES
from kgctl.pipelines.schemas.groups import HEALTH, LAG, REBALANCES
from kgctl.pipelines.tables.newest import newest_rows
from kgctl.pipelines.tables.replacing import replace_file

STATE = "report/pages.json"
MAX_ANOMALIES = 50
_HEALTH_COLUMNS = ["group", "topic", "part", "status", "complete", "lag", "reasons"]

# Reads files of a table of which the newest time is after a time in ms, with timestamps as ms.
Read = Callable[[str, Sequence[str], int | None], Iterator[pa.Table]]


@dataclass(slots=True)
class PagesState:
    """`until_ms`: the last point of f_lag that the pages know. `groups`: what each page was made of."""

    made_by: str = ""
    width_ms: int = 0
    until_ms: int | None = None
    groups: dict[str, list[Any]] = field(default_factory=dict)


def write_pages(out: Path, facts: Facts, read: Read, render: Callable[[GroupFacts], str]) -> int:
    """Write the pages that changed, delete those of groups that are gone. Return how many were written."""
    before = _load(out / STATE)
    health = _health(out)
    counts = {} if facts.rebalances is None else facts.rebalances.counts
    rows = {row.group: row for row in facts.every}
    anomalies = _anomalies(read)
    made_of = {
        group: [row.page, _digest(health.get(group, [])), counts.get(group, 0), len(anomalies.get(group, []))]
        for group, row in rows.items()
    }
    width_ms = bin_width(facts.lag_period_ms, facts.lag_step_ms)
    last_ms = facts.lag_period_ms[-1] if facts.lag_period_ms else None
    is_old = before.made_by != _made_by() or before.width_ms != width_ms or (before.until_ms or 0) > (last_ms or 0)
    if is_old:
        changed = set(rows)
    else:
        changed = {group for group, parts in made_of.items() if before.groups.get(group) != parts}
        changed |= {group for group in rows if not (out / rows[group].page).exists()}
        changed |= _moved(read, before.until_ms) & rows.keys()
    folder = out / "report" / "groups"
    folder.mkdir(parents=True, exist_ok=True)
    if changed:
        lag: Rows = lambda columns: read(LAG.name, columns, None)  # noqa: E731
        rebalances: Rows = lambda columns: read(REBALANCES.name, columns, None)  # noqa: E731
        for one in group_facts(changed, lag, health, rebalances, width_ms):
            whole = replace(one, anomalies=_newest_first(anomalies.get(one.group, [])))
            replace_file(out / rows[one.group].page, render(whole).encode())
    for group, parts in before.groups.items():
        if group not in rows:
            (out / parts[0]).unlink(missing_ok=True)
    after = PagesState(_made_by(), width_ms, last_ms, made_of)
    replace_file(out / STATE, json.dumps(asdict(after)).encode())
    return len(changed)


def _health(out: Path) -> dict[str, list[Row]]:
    found = newest_rows(out, HEALTH, _HEALTH_COLUMNS)
    of_group: defaultdict[str, list[Row]] = defaultdict(list)
    for row in [] if found is None else found[1].to_pylist():
        of_group[row.pop("group")].append(row)
    return of_group


def _anomalies(read: Read) -> dict[str, list[Row]]:
    """The events of each group."""
    columns = ["group", "metric", "event", "at", "since", "ended", "worst", "low", "high", "reason"]
    of_group: defaultdict[str, list[Row]] = defaultdict(list)
    for table in read(ANOMALIES.name, columns, None):
        for row in table.to_pylist():
            of_group[row.pop("group")].append(row)
    return of_group


def _newest_first(events: list[Row]) -> tuple[Anomaly, ...]:
    """One for each start; its end, if there was one, replaces it."""
    found: dict[tuple[str, int], Row] = {}
    for row in sorted(events, key=lambda row: (row["at"], row["event"] == STARTED)):
        found[row["metric"], row["since"]] = row
    newest = sorted(found.values(), key=lambda row: (-row["since"], row["metric"]))[:MAX_ANOMALIES]
    return tuple(
        Anomaly(
            row["metric"],
            row["since"],
            None if row["event"] == STARTED else row["ended"],
            row["worst"],
            row["low"],
            row["high"],
            row["reason"],
        )
        for row in newest
    )


def _moved(read: Read, until_ms: int | None) -> set[str]:
    """The groups with lag, commits or new records at a point after that time."""
    found: set[str] = set()
    for table in read(LAG.name, ["group", "at", "lag", "consume_rate", "produce_rate"], until_ms):
        is_new = pc.greater(table["at"], -1 if until_ms is None else until_ms)
        rates = [pc.fill_null(pc.not_equal(table[name], 0), True) for name in ("lag", "consume_rate", "produce_rate")]
        moves = pc.or_(rates[0], pc.or_(rates[1], rates[2]))
        found.update(pc.unique(table.filter(pc.and_(is_new, moves))["group"]).to_pylist())
    return found


def _digest(rows: list[Row]) -> str:
    text = json.dumps(sorted(json.dumps(row, sort_keys=True) for row in rows))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@cache
def _made_by() -> str:
    """The code and the templates that make pages: another version makes all of them again."""
    digest = hashlib.sha256()
    package = resources.files("kgctl.pipelines.report")
    for folder in (package, package / "templates"):
        for file in sorted(folder.iterdir(), key=lambda file: file.name):
            if file.is_file() and file.name.endswith((".py", ".jinja", ".css", ".js")):
                digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def _load(path: Path) -> PagesState:
    """Empty if the file is missing or unreadable: then all pages are written."""
    try:
        return PagesState(**json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError):
        return PagesState()
