"""Which columns the table of each kind of row has: headers, order and least widths of Kafka's own tools where they have it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from enum import Enum
from typing import Any


class Shown(Enum):
    ALWAYS = "always"
    VERBOSE = "in verbose tables"
    IF_ANY = "if a row has a value"
    VERBOSE_IF_ANY = "in verbose tables if a row has a value"


@dataclass(frozen=True, slots=True)
class Column:
    """`value` names the field of the row, or takes the row and gives what to print; `width` is the least one."""

    header: str
    value: str | Callable[[Any], Any]
    width: int = 0
    shown: Shown = Shown.ALWAYS

    def of(self, row: Any) -> Any:
        return getattr(row, self.value) if isinstance(self.value, str) else self.value(row)

    def is_shown(self, rows: Iterable[Any], verbose: bool) -> bool:
        if self.shown is Shown.ALWAYS:
            return True
        if self.shown is not Shown.IF_ANY and not verbose:
            return False
        return self.shown is Shown.VERBOSE or any(self.of(row) is not None for row in rows)


@dataclass(frozen=True, slots=True)
class Layout:
    """`block` names the field whose change starts a new table, with its own header and widths.

    `slack` is added to the width of the first column, as Kafka's tool does it for listings.
    """

    columns: tuple[Column, ...]
    block: str | None = None
    slack: int = 0


ERROR = Column("ERROR", "error", shown=Shown.IF_ANY)


def _coordinator(row: Any) -> str | None:
    return None if row.coordinator is None else f"{row.coordinator}  ({row.coordinator_id})"


def _time(row: Any) -> str:
    moment = datetime.fromtimestamp(row.timestamp / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _cause(row: Any) -> str | None:
    return f"{row.cause} ({row.reason})" if row.reason else row.cause


def _why_left(row: Any) -> str | None:
    """What took the members, where it is not what began the rebalance."""
    causes = Counter(row.left_causes)
    if not causes or causes.keys() == {row.cause}:
        return None
    return ", ".join(f"{count} {cause}" for cause, count in causes.items())


def _numbers(field: str) -> Callable[[Any], str | None]:
    return lambda row: ",".join(map(str, getattr(row, field))) or None


LAYOUTS: dict[str, Layout] = {
    "groups": Layout(
        (
            Column("GROUP", "group", 15),
            Column("TYPE", "type", 20),
            Column("STATE", "state", 20),
            Column("PROTOCOL", "protocol"),
        ),
        slack=10,
    ),
    "group-offsets": Layout(
        (
            Column("GROUP", "group", 15),
            Column("TOPIC", "topic", 15),
            Column("PARTITION", "partition", 10),
            Column("LEADER-EPOCH", "leader_epoch", 15, Shown.VERBOSE),
            Column("CURRENT-OFFSET", "current_offset", 15),
            Column("LOG-END-OFFSET", "log_end_offset", 15),
            Column("LAG", "lag", 15),
            Column("CONSUMER-ID", "consumer_id", 15),
            Column("HOST", "host", 15),
            Column("CLIENT-ID", "client_id"),
            ERROR,
        ),
        block="group",
    ),
    "group-members": Layout(
        (
            Column("GROUP", "group", 15),
            Column("CONSUMER-ID", "consumer_id", 15),
            Column("GROUP-INSTANCE-ID", "group_instance_id", 17, Shown.IF_ANY),
            Column("HOST", "host", 15),
            Column("CLIENT-ID", "client_id", 15),
            Column("#PARTITIONS", "partitions", 15),
            Column("CURRENT-EPOCH", "current_epoch", 15, Shown.VERBOSE),
            Column("CURRENT-ASSIGNMENT", "current_assignment", 20, Shown.VERBOSE),
            Column("TARGET-EPOCH", "target_epoch", 15, Shown.VERBOSE),
            Column("TARGET-ASSIGNMENT", "target_assignment", 20, Shown.VERBOSE),
            Column("PHASE", "phase", 15, Shown.VERBOSE_IF_ANY),
            Column("HEARTBEAT-AGE-MS", "heartbeat_age_ms", 15, Shown.VERBOSE_IF_ANY),
            Column("GENERATION", "generation"),
            ERROR,
        ),
        block="group",
    ),
    "group-state": Layout(
        (
            Column("GROUP", "group", 15),
            Column("COORDINATOR (ID)", _coordinator, 25),
            Column("ASSIGNMENT-STRATEGY", "assignment_strategy", 20),
            Column("STATE", "state", 20),
            Column("GROUP-EPOCH", "group_epoch", 15, Shown.VERBOSE),
            Column("TARGET-ASSIGNMENT-EPOCH", "target_assignment_epoch", 25, Shown.VERBOSE),
            Column("#MEMBERS", "members", 10),
            Column("GENERATION", "generation", 10),
            Column("TYPE", "type"),
            ERROR,
        )
    ),
    "offset-reset": Layout(
        (
            Column("GROUP", "group", 30),
            Column("TOPIC", "topic", 30),
            Column("PARTITION", "partition", 10),
            Column("OLD-OFFSET", "old_offset", 15),
            Column("NEW-OFFSET", "new_offset", 15),
            Column("DELTA", "delta", 10),
            Column("STATUS", "status", 8),
            Column("NOTE", "note", shown=Shown.IF_ANY),
            ERROR,
        )
    ),
    "offset-deletion": Layout(
        (
            Column("TOPIC", "topic", 30),
            Column("PARTITION", "partition", 15),
            Column("OLD-OFFSET", "old_offset", 15),
            Column("STATUS", "status", 15),
            ERROR,
        )
    ),
    "group-deletion": Layout(
        (Column("GROUP", "group", 30), Column("STATE", "state", 20), Column("STATUS", "status", 8), ERROR)
    ),
    "member-removal": Layout(
        (
            Column("GROUP", "group", 15),
            Column("CONSUMER-ID", "consumer_id", 15),
            Column("GROUP-INSTANCE-ID", "group_instance_id", 17, Shown.IF_ANY),
            Column("HOST", "host", 15),
            Column("CLIENT-ID", "client_id", 15),
            Column("STATUS", "status", 8),
            ERROR,
        )
    ),
    "group-history": Layout(
        (
            Column("TIME", _time, 24),
            Column("GENERATION", "generation", 10),
            Column("EVENT", "event", 17),
            Column("CAUSE", _cause, 15),
            Column("PREPARE-MS", "prepare_ms", 10),
            Column("COMPLETE-MS", "complete_ms", 11),
            Column("MEMBERS", "members", 7),
            Column("JOINED", "joined_count", 6),
            Column("LEFT", "left_count", 4),
            Column("LEFT-BECAUSE", _why_left, 12, Shown.IF_ANY),
            Column("ABSENT", lambda row: row.absent_count or None, 6, Shown.IF_ANY),
            Column("MOVED", "partitions_moved", 5),
            Column("REJECTED", "commits_rejected", 8),
            Column("WHO-JOINED", "joined", 15, Shown.VERBOSE),
            Column("WHO-LEFT", "left", 15, Shown.VERBOSE),
            Column("WHO-WAS-ABSENT", lambda row: row.absent or None, 15, Shown.VERBOSE_IF_ANY),
        )
    ),
    "group-rebalance": Layout(
        (
            Column("GROUP", "group", 15),
            Column("CONSUMER-ID", "consumer_id", 15),
            Column("GROUP-INSTANCE-ID", "group_instance_id", 17, Shown.IF_ANY),
            Column("HOST", "host", 15),
            Column("CLIENT-ID", "client_id", 15),
            Column("METHOD", "method", 8),
            Column("GENERATION", "generation_before", 10),
            Column("NEW-GENERATION", "generation_after", 14, Shown.IF_ANY),
            Column("STABLE-AFTER-MS", "stable_after_ms", 15, Shown.IF_ANY),
            Column("STATUS", "status", 8),
            ERROR,
        )
    ),
    "topics": Layout(
        (
            Column("TOPIC", "topic", 30),
            Column("PARTITIONS", "partitions", 10),
            Column("REPLICAS", "replicas", 8),
            Column("INTERNAL", lambda row: "yes" if row.internal else "no"),
            ERROR,
        )
    ),
    "topic-partitions": Layout(
        (
            Column("TOPIC", "topic", 30),
            Column("PARTITION", "partition", 10),
            Column("LEADER", "leader", 8),
            Column("REPLICAS", _numbers("replicas"), 10),
            Column("ISR", _numbers("isr"), 10),
            Column("LOG-START-OFFSET", "log_start_offset", 16),
            Column("LOG-END-OFFSET", "log_end_offset", 15),
            Column("RECORDS", "records"),
            ERROR,
        )
    ),
    "topic-configs": Layout(
        (
            Column("TOPIC", "topic", 30),
            Column("CONFIG", "config", 30),
            Column("VALUE", "value", 20),
            Column("SOURCE", "source"),
            ERROR,
        )
    ),
    "pipeline-jobs": Layout(
        (
            Column("JOB", "job", 10),
            Column("READS", lambda row: ", ".join(row.reads), 20),
            Column("WRITES", lambda row: ", ".join(row.writes), 20),
            Column("SUMMARY", "summary"),
        )
    ),
    "pipeline-columns": Layout(
        (
            Column("TABLE", "table", 12),
            Column("COLUMN", "column", 14),
            Column("TYPE", lambda row: row.type.partition("<")[0], 9),
            Column("MEANING", "meaning"),
        )
    ),
    "pipeline-doctor": Layout(
        (
            Column("WHAT", "what", 12),
            Column("OK", lambda row: {True: "yes", False: "no", None: None}[row.ok], 3),
            Column("FOUND", "found", 20),
            Column("ADVICE", "advice", shown=Shown.IF_ANY),
        )
    ),
    "pipeline-status": Layout(
        (
            Column("TABLE", "table", 12),
            Column("JOB", "job", 10),
            Column("ROWS", "rows", 10),
            Column("FILES", "files", 6),
            Column("BYTES", "size_bytes", 10),
            Column("BATCHES", "batches", 7),
            Column("WRITTEN", "written"),
        )
    ),
    "topic-changes": Layout(
        (
            Column("TOPIC", "topic", 30),
            Column("PARTITIONS", "partitions", 10),
            Column("REPLICAS", "replicas", 8),
            Column("STATUS", "status", 8),
            ERROR,
        )
    ),
}


def layout_of(kind: str, rows: Sequence[Any]) -> Layout:
    """The layout of the kind; for a kind without one, the fields of the rows in order."""
    if kind in LAYOUTS:
        return LAYOUTS[kind]
    names = [field.name for field in fields(rows[0])] if rows else []
    return Layout(tuple(Column(name.upper().replace("_", "-"), name) for name in names))
