"""Tables of the overview that show what further jobs found: one row per row, or per group or topic. Needs pyarrow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kgctl.pipelines.report import wording
from kgctl.pipelines.results.verdicts import STARTED
from kgctl.pipelines.schemas import TABLES
from kgctl.pipelines.schemas.group_facts import ANOMALIES, CHURN, COMMIT_RATES, MEMBER_SKEW, PARTITION_SKEW
from kgctl.pipelines.schemas.model import Table
from kgctl.pipelines.schemas.topics import COMPACTION, HOLDS, PRODUCERS, RETENTION
from kgctl.pipelines.tables.arrow import read_file
from kgctl.pipelines.tables.formats import open_table
from kgctl.pipelines.tables.newest import newest_rows

MAX_ROWS = 50

Value = Any


@dataclass(frozen=True, slots=True)
class Cell:
    """`sort` is a number or a text, None if the value is not known."""

    text: str
    sort: float | str | None


@dataclass(frozen=True, slots=True)
class Listing:
    """`headings` begin with ">" above numbers. Without rows, `empty` is shown. `more` counts rows that are left out."""

    id: str
    title: str
    intro: str
    caption: str
    empty: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    more: int


@dataclass(frozen=True, slots=True)
class _Item:
    """A column. `fold` is how rows of one group or topic are put together: sum, max or min; "" if it is what they share."""

    heading: str
    column: str
    show: Callable[[Value], str]
    fold: str = ""


@dataclass(frozen=True, slots=True)
class _Kind:
    """What a listing shows. `order` are columns, the highest values first, unknown ones last. `keep` selects rows.

    `newest`: only the rows of the newest measurement. `last_of`: only the last row of each of these keys; `keep` may then use
    `event`.
    """

    id: str
    title: str
    intro: str
    caption: str
    empty: str
    table: Table
    items: tuple[_Item, ...]
    order: tuple[str, ...]
    keep: Callable[[pa.Table], Any] | None = None
    newest: bool = True
    last_of: tuple[str, ...] = ()


def _count(names: Sequence[str] | None) -> str:
    return wording.NONE if names is None else str(len(names))


def _yes(value: bool | None) -> str:
    return wording.NONE if value is None else "yes" if value else "no"


def _plural(fold: str, names: str) -> list[_Item]:
    return [_Item(">" + name.replace("_", " ").capitalize(), name, wording.number, fold) for name in names.split()]


_KINDS = (
    _Kind(
        "anomalies",
        "Anomalies",
        "Groups whose lag, commit rate or rebalances are not what is usual for them at this time.",
        "Anomalies that have not ended, the highest value first",
        "No group is anomalous now.",
        ANOMALIES,
        (
            _Item("Group", "group", wording.name),
            _Item("Metric", "metric", wording.name),
            _Item("Since", "since", wording.moment),
            _Item(">Value", "value", wording.number),
            _Item(">Usually from", "low", wording.number),
            _Item(">To", "high", wording.number),
            _Item("Why", "reason", wording.name),
        ),
        ("value",),
        keep=lambda rows: pc.equal(rows["event"], STARTED),
        newest=False,
        last_of=("group", "metric"),
    ),
    _Kind(
        "holds",
        "Open transactions",
        "Partitions where readers of committed records wait for an open transaction to end. `kgctl transactions abort` ends a "
        "hanging one: no coordinator knows its producer.",
        "Transactions that hold readers, the oldest first",
        "No open transaction holds readers.",
        HOLDS,
        (
            _Item("Topic", "topic", wording.name),
            _Item(">Partition", "part", wording.plain),
            _Item("Transactional id", "transactional_id", wording.name),
            _Item(">Waiting records", "waiting", wording.number),
            _Item(">Open for", "held_ms", wording.duration),
            _Item("Hanging", "hanging", _yes),
        ),
        ("held_ms", "waiting"),
    ),
    _Kind(
        "transactions",
        "Transactions",
        "The transactional ids, those with the highest share of aborted transactions first.",
        "Transactions by transactional id",
        "No transaction is known.",
        PRODUCERS,
        (
            _Item("Transactional id", "transactional_id", wording.name),
            _Item(">Transactions", "transactions", wording.number),
            _Item(">Aborted", "aborted_share", wording.share),
            _Item(">Timed out", "timed_out", wording.number),
            _Item(">95% within", "p95_ms", wording.duration),
            _Item(">Longest", "max_ms", wording.duration),
            _Item(">Open for", "open_ms", wording.duration),
        ),
        ("aborted_share", "open_ms", "transactions"),
    ),
    _Kind(
        "churn",
        "Members that join and leave",
        "Joins and leaves of members over the whole period, by host. Restarts are static members that returned.",
        "Joins and leaves, most first",
        "No member joined or left.",
        CHURN,
        (
            _Item("Group", "group", wording.name),
            _Item("Host", "client_host", wording.name),
            *_plural("sum", "joins leaves timed_out restarts fenced short_sessions"),
            _Item(">Longest session", "session_max_ms", wording.duration, "max"),
        ),
        ("leaves", "joins"),
        newest=False,
    ),
    _Kind(
        "commits",
        "Commits",
        "How often groups commit. Rewinds are commits of an offset below the one before. Where the log was compacted, counts "
        "are lower bounds.",
        "Commits of groups, the longest gap between commits first",
        "No commit is known.",
        COMMIT_RATES,
        (
            _Item("Group", "group", wording.name),
            *_plural("sum", "commits rewinds"),
            _Item(">Records rewound", "rewound", wording.number, "sum"),
            _Item(">Longest gap", "gap_max_ms", wording.duration, "max"),
            _Item(">Lowest completeness", "complete", wording.share, "min"),
        ),
        ("gap_max_ms", "commits"),
        newest=False,
    ),
    _Kind(
        "members",
        "Uneven members",
        "Members with more than twice the partitions or the lag of the mean of their group; 1 is even.",
        "Members with more than their share, the most uneven first",
        "The members of every group have about the same share.",
        MEMBER_SKEW,
        (
            _Item("Group", "group", wording.name),
            _Item("Member", "member_id", wording.name),
            _Item("Host", "client_host", wording.name),
            _Item(">Partitions", "parts", wording.number),
            _Item(">Lag", "lag", wording.number),
            _Item(">Partitions against mean", "parts_ratio", wording.ratio),
            _Item(">Lag against mean", "lag_ratio", wording.ratio),
        ),
        ("lag_ratio", "parts_ratio"),
        keep=lambda rows: pc.or_kleene(pc.greater(rows["lag_ratio"], 2), pc.greater(rows["parts_ratio"], 2)),
    ),
    _Kind(
        "partitions",
        "Uneven partitions",
        "Partitions with more than half of the lag of their group, and partitions with lag that no member has.",
        "Partitions with most of the lag of their group, the highest lag first",
        "The lag of every group is spread over its partitions.",
        PARTITION_SKEW,
        (
            _Item("Group", "group", wording.name),
            _Item("Topic", "topic", wording.name),
            _Item(">Partition", "part", wording.plain),
            _Item(">Lag", "lag", wording.number),
            _Item(">Share of the lag", "lag_share", wording.share),
            _Item(">Members", "members", _count),
        ),
        ("lag", "lag_share"),
        keep=lambda rows: pc.and_kleene(
            pc.greater(rows["lag"], 0),
            pc.or_kleene(pc.greater(rows["lag_share"], 0.5), pc.equal(pc.list_value_length(rows["members"]), 0)),
        ),
    ),
    _Kind(
        "compaction",
        "Compaction",
        "What compaction of whole logs would free, an upper limit. The highest dirty ratio of a topic's partitions is an estimate; "
        "Kafka compacts above the limit, but never the newest segment.",
        "Compacted topics, the most to free first",
        "No compacted topic was read.",
        COMPACTION,
        (
            _Item("Topic", "topic", wording.name),
            _Item(">Size", "bytes", wording.size, "sum"),
            _Item(">To free", "free_bytes", wording.size, "sum"),
            _Item(">Keys", "keys", wording.number, "sum"),
            _Item(">Records per key", "records_per_key", wording.ratio, "max"),
            _Item(">Tombstones", "tombstones", wording.number, "sum"),
            _Item(">Dirty ratio", "dirty_ratio", wording.share, "max"),
            _Item(">Limit", "dirty_ratio_limit", wording.share, "max"),
        ),
        ("free_bytes", "bytes"),
    ),
    _Kind(
        "retention",
        "Retention",
        "The size of topics, how fast they grow, and what retention deletes next. Sizes of parts of a log are estimates.",
        "Topics, the largest first",
        "No topic was measured.",
        RETENTION,
        (
            _Item("Topic", "topic", wording.name),
            _Item(">Size", "bytes", wording.size, "sum"),
            _Item(">Growth per day", "growth_bytes", wording.size, "sum"),
            _Item(">Will settle at", "expected_bytes", wording.size, "sum"),
            _Item(">Oldest record", "oldest", wording.moment, "min"),
            _Item(">Next to expire", "next_expiry", wording.moment, "min"),
            _Item(">Deleted within a day", "day_bytes", wording.size, "sum"),
            _Item(">Expired, still there", "expired_records", wording.number, "sum"),
        ),
        ("bytes", "growth_bytes"),
    ),
)


def read_listings(out: Path) -> list[Listing]:
    """The listings whose job has run. Raises Damaged, Newer."""
    return [_listing(out, kind) for kind in _KINDS if open_table(out / kind.table.name).manifests.is_dir()]


def _listing(out: Path, kind: _Kind) -> Listing:
    rows = _rows(out, kind)
    if rows is not None and kind.keep is not None:
        rows = rows.filter(pc.fill_null(kind.keep(rows), False))
    shown: list[dict[str, Value]] = []
    count = 0
    if rows is not None:
        rows = _folded(rows, kind.items)
        count = rows.num_rows
        order = [(name, "descending") for name in kind.order] + [(kind.items[0].column, "ascending")]
        picked = pc.sort_indices(rows, sort_keys=order)[:MAX_ROWS]
        shown = rows.take(picked).to_pylist()
    return Listing(
        id=kind.id,
        title=kind.title,
        intro=kind.intro,
        caption=kind.caption,
        empty=kind.empty,
        headings=tuple(item.heading for item in kind.items),
        rows=tuple(tuple(_cell(item, row[item.column]) for item in kind.items) for row in shown),
        more=count - len(shown),
    )


def _rows(out: Path, kind: _Kind) -> pa.Table | None:
    columns = [item.column for item in kind.items]
    if kind.newest:
        found = newest_rows(out, kind.table, columns)
        return None if found is None else _in_ms(found[1])
    if kind.last_of:
        columns += ["event", "at"]
    folder, parts = open_table(out / kind.table.name), []
    for path, file in folder.located():
        # Put together file by file: the whole table may not fit into memory.
        parts.append(_folded(_in_ms(read_file(path, TABLES[kind.table.name], file.schema, columns)), kind.items))
    if not parts:
        return None
    rows = pa.concat_tables(parts)
    return _last(rows, kind.last_of) if kind.last_of else rows


def _last(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    """At the same time, one anomaly may end before another one starts."""
    rows = rows.sort_by([("at", "descending"), ("event", "descending")])
    number = pa.array(range(rows.num_rows), pa.int64())
    first = rows.append_column("number", number).group_by(list(keys)).aggregate([("number", "min")])
    return rows.take(first["number_min"])


def _folded(rows: pa.Table, items: Sequence[_Item]) -> pa.Table:
    keys = [item.column for item in items if not item.fold]
    folds = [(item.column, item.fold) for item in items if item.fold]
    if not folds:
        return rows
    found = rows.group_by(keys).aggregate(folds)
    names = [*keys, *(column for column, _ in folds)]
    return found.select([*keys, *(f"{column}_{fold}" for column, fold in folds)]).rename_columns(names)


def _in_ms(rows: pa.Table) -> pa.Table:
    for number, field in enumerate(rows.schema):
        if pa.types.is_timestamp(field.type):
            in_ms = rows.column(number).cast(pa.timestamp("ms"), safe=False).cast(pa.int64())
            rows = rows.set_column(number, field.name, in_ms)
    return rows


def _cell(item: _Item, value: Value) -> Cell:
    sort = len(value) if isinstance(value, list) else value
    return Cell(item.show(value), sort if sort is None or isinstance(sort, int | float) else item.show(value))
