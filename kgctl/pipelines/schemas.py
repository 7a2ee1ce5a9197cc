"""The tables: their columns, what each means, and how each is written into folders. Knows nothing of Spark."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """`type` is in Spark's DDL."""

    name: str
    type: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Table:
    """`day_of` names the timestamp whose UTC date is the `date=` folder of a row."""

    name: str
    summary: str
    columns: tuple[Column, ...]
    day_of: str

    @property
    def ddl(self) -> str:
        return ", ".join(f"`{column.name}` {column.type}" for column in self.columns)

    @property
    def column_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


# What Spark's own Kafka source gives, in its order; `headers` come only with includeHeaders.
RAW_COLUMNS = (
    Column("key", "binary", "the record's key, or null"),
    Column("value", "binary", "the record's value, or null"),
    Column("topic", "string", ""),
    Column("partition", "int", ""),
    Column("offset", "bigint", ""),
    Column("timestamp", "timestamp", "when it was made, or appended"),
    Column("timestampType", "int", "0: the producer's time, 1: the log's"),
)
RAW_DDL = ", ".join(f"`{column.name}` {column.type}" for column in RAW_COLUMNS)
HEADERS_DDL = "`headers` array<struct<key: string, value: binary>>"

_GROUP = Column("group", "string", "the group id")
_TOPIC = Column("topic", "string", "the topic that the group reads")
_PART = Column("part", "int", "the partition of that topic")
_LOG = (
    Column("log_partition", "int", "the partition of __consumer_offsets that the record came from"),
    Column("log_offset", "bigint", "its offset there"),
    Column("log_ts", "timestamp", "its timestamp there"),
)

COMMITS = Table(
    "commits",
    "every committed offset",
    (
        _GROUP,
        _TOPIC,
        _PART,
        Column("committed", "bigint", "the committed offset; null: the commit was deleted or has expired"),
        Column("leader_epoch", "int", "of the record before it; null: not known"),
        Column("metadata", "string", "what the consumer noted"),
        Column("commit_ts", "timestamp", "when it was committed, by the broker's clock"),
        Column("expire_ts", "timestamp", "when it expires, of commits that say so themselves (value version 1)"),
        Column("value_version", "smallint", "of the record's value"),
        Column("tombstone", "boolean", "true: the commit was taken away"),
        *_LOG,
    ),
    day_of="log_ts",
)

MEMBER_DDL = (
    "struct<member_id: string, instance_id: string, client_id: string, client_host: string, "
    "rebalance_timeout_ms: int, session_timeout_ms: int, "
    "assigned: array<struct<topic: string, parts: array<int>>>>"
)

GROUP_EVENTS = Table(
    "group_events",
    "every record about a group itself: a generation that became stable, a group that became empty or was deleted",
    (
        _GROUP,
        Column("group_type", "string", "classic, consumer, share or streams, by the kind of the record"),
        Column("kind", "string", "the name of the record's key, as Kafka names it: GroupMetadata, ..."),
        Column("generation", "int", "of a classic group"),
        Column("member_epoch", "int", "of a group of KIP-848, where the record has one"),
        Column("protocol_type", "string", "consumer, connect, ..."),
        Column("protocol", "string", "the assignor; null: the group was empty"),
        Column("leader", "string", "the member id of the group leader"),
        Column("state_ts", "timestamp", "since when the group is in the state"),
        Column("tombstone", "boolean", "true: the group was deleted"),
        Column("members", f"array<{MEMBER_DDL}>", "its members with what each was assigned"),
        Column("value_version", "smallint", "of the record's value"),
        *_LOG,
    ),
    day_of="log_ts",
)

QUARANTINE = Table(
    "quarantine",
    "records that could not be read, as they are, with the reason",
    (
        *RAW_COLUMNS,
        Column("reason", "string", "why: unknown key version, unknown value version, malformed key, malformed value"),
    ),
    day_of="timestamp",
)

LOG_ENDS = Table(
    "log_ends",
    "where the logs of topics began and ended at a time",
    (
        _TOPIC,
        _PART,
        Column("at", "timestamp", "the time"),
        Column("log_start", "bigint", "the first offset; null: not asked"),
        Column("log_end", "bigint", "the offset of the first record at or after `at`, or the end of the log"),
        Column("source", "string", "sampled: asked at that time; by_timestamp: looked up afterwards"),
    ),
    day_of="at",
)

LAG = Table(
    "f_lag",
    "how far each group was behind, in records and in time",
    (
        _GROUP,
        _TOPIC,
        _PART,
        Column("at", "timestamp", "the time"),
        Column("committed", "bigint", "what was committed then"),
        Column("log_end", "bigint", "where the log ended then"),
        Column("lag", "bigint", "records between the two, never below 0"),
        Column("lag_ms", "bigint", "for how long the log has been beyond the commit, ms; 0: no lag; null: not known"),
        Column("consume_rate", "double", "records committed per second since the point before; null: no such point"),
        Column("produce_rate", "double", "records appended per second since the point before; null: no such point"),
        Column("eta_s", "double", "seconds until the lag is gone at these rates; null: it does not shrink"),
    ),
    day_of="at",
)

HEALTH = Table(
    "health",
    "a verdict per partition of a group, by Burrow's rules over its last commits",
    (
        _GROUP,
        _TOPIC,
        _PART,
        Column("at", "timestamp", "when it was judged"),
        Column("status", "string", "OK, WARN, STALL, STOP, REWIND or UNKNOWN"),
        Column("complete", "double", "share of the window that is filled with commits, 0 to 1"),
        Column("lag", "bigint", "records behind, at the last commit's time or now, whichever is more"),
        Column(
            "eta_s",
            "double",
            "seconds until the lag is gone, as it shrank since the window's first commit; null: it did not",
        ),
        Column("reasons", "array<string>", "why, in words"),
    ),
    day_of="at",
)

REBALANCES = Table(
    "f_rebalance",
    "every rebalance of every group",
    (
        _GROUP,
        Column("generation", "int", "that the rebalance led to"),
        Column("started", "timestamp", "when members were called together; null: not known"),
        Column("ended", "timestamp", "when the generation was stable, or the group empty"),
        Column("duration_ms", "bigint", "between the two; null: not known"),
        Column(
            "duration_source", "string", "events: told by kgctl's broker; log: only the end is in the log, no duration"
        ),
        Column("cause", "string", "as kgctl's broker says it; null: not known"),
        Column("reason", "string", "what the client or admin gave as its reason"),
        Column("joined", "array<string>", "member ids that came; null: not known, of a group first seen in mid-life"),
        Column("left", "array<string>", "member ids that went; null: not known"),
        Column("members", "int", "members of the generation"),
        Column("moved_parts", "int", "partitions with another owner than before; null: not known"),
        Column("skew", "double", "partitions of the busiest member over the mean, 1: even; null: not known"),
        Column("commits_rejected", "bigint", "commits refused since the generation before; null: not known"),
    ),
    day_of="ended",
)

TABLES = {table.name: table for table in (COMMITS, GROUP_EVENTS, QUARANTINE, LOG_ENDS, LAG, HEALTH, REBALANCES)}
