"""The tables about groups: commits, events, lag, health, rebalances."""

from __future__ import annotations

from kgctl.model.health import EVALUATED
from kgctl.pipelines.schemas.model import Column, Table
from kgctl.pipelines.schemas.sources import RAW_COLUMNS

GROUP = Column("group", "string", "the group id")
TOPIC = Column("topic", "string", "the topic that the group consumes")
PART = Column("part", "int", "the partition of that topic")
_LOG = (
    Column("log_partition", "int", "the partition of __consumer_offsets that holds the record"),
    Column("log_offset", "bigint", "the record's offset there"),
    Column("log_ts", "timestamp", "the record's timestamp there"),
)

COMMITS = Table(
    "commits",
    "every committed offset",
    (
        GROUP,
        TOPIC,
        PART,
        Column("committed", "bigint", "the committed offset; null: the commit was deleted or expired"),
        Column("leader_epoch", "int", "the leader epoch of the last consumed record; null: not known"),
        Column("metadata", "string", "text that the consumer committed with the offset"),
        Column("commit_ts", "timestamp", "the time of the commit, by the broker's clock"),
        Column("expire_ts", "timestamp", "when the commit expires, if the record says so (value version 1)"),
        Column("value_version", "smallint", "the version of the record's value"),
        Column("tombstone", "boolean", "true: the commit was deleted"),
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
    "every record about a group itself: a generation became stable, the group became empty or was deleted",
    (
        GROUP,
        Column("group_type", "string", "classic, consumer, share or streams, from the kind of the record"),
        Column("kind", "string", "Kafka's name of the record's key: GroupMetadata, ..."),
        Column("generation", "int", "the generation of a classic group"),
        Column("member_epoch", "int", "the epoch in a record of a KIP-848 group, if it has one"),
        Column("protocol_type", "string", "consumer, connect, ..."),
        Column("protocol", "string", "the assignor; null: the group was empty"),
        Column("leader", "string", "the member id of the group leader"),
        Column("state_ts", "timestamp", "when the group entered its state"),
        Column("tombstone", "boolean", "true: the group was deleted"),
        Column("members", f"array<{MEMBER_DDL}>", "the members with their assignments"),
        Column("value_version", "smallint", "the version of the record's value"),
        Column(
            "content",
            "string",
            "the value of a record of a consumer or share group as JSON, as `kgctl consume --decode offsets --json` shows it: "
            "subscriptions, targets, what members own and must give up; null: none, or not known",
        ),
        *_LOG,
    ),
    day_of="log_ts",
)

QUARANTINE = Table(
    "quarantine",
    "records that could not be decoded, unchanged, with the reason",
    (
        *RAW_COLUMNS,
        Column("reason", "string", "malformed key, malformed value, unknown key version or unknown value version"),
    ),
    day_of="timestamp",
)

LOG_ENDS = Table(
    "log_ends",
    "where the logs of topics began and ended at points in time",
    (
        TOPIC,
        PART,
        Column("at", "timestamp", "the point in time"),
        Column("log_start", "bigint", "the first offset; null: not looked up"),
        Column("log_end", "bigint", "the offset of the first record at or after `at`, or the end of the log"),
        Column("source", "string", "sampled: asked at that time; by_timestamp: looked up later by record timestamps"),
    ),
    day_of="at",
)

LAG = Table(
    "f_lag",
    "the lag of each group, in records and in time, at points in time",
    (
        GROUP,
        TOPIC,
        PART,
        Column("at", "timestamp", "the point in time"),
        Column("committed", "bigint", "the committed offset at that time"),
        Column("log_end", "bigint", "the end of the log at that time"),
        Column("lag", "bigint", "records between the two, never below 0"),
        Column(
            "lag_ms", "bigint", "age of the first record after the committed offset, ms; 0: no lag; null: not known"
        ),
        Column("consume_rate", "double", "records committed per second since the previous point; null: no such point"),
        Column("produce_rate", "double", "records appended per second since the previous point; null: no such point"),
        Column("eta_s", "double", "seconds until the lag is gone at these rates; null: the lag does not shrink"),
    ),
    day_of="at",
)

HEALTH = Table(
    "health",
    "the health of each partition of a group, from its last commits",
    (
        GROUP,
        TOPIC,
        PART,
        Column("at", "timestamp", "the time of the evaluation"),
        Column(
            "status",
            "string",
            "OK, LAGGING, STALLED, STOPPED, REWOUND or UNKNOWN (in Burrow: OK, WARN, STALL, STOP, REWIND, NOTFOUND)",
        ),
        Column("complete", "double", "share of the ten evaluated commits that exist, 0 to 1"),
        Column("lag", "bigint", "lag at the last commit or now, whichever is higher"),
        Column(
            "eta_s",
            "double",
            "seconds until the lag is gone at the rate since the first evaluated commit; null: it does not shrink, or STOPPED",
        ),
        Column("reasons", "array<string>", "why, in words"),
    ),
    day_of="at",
    verdicts=tuple(map(str, EVALUATED)),
)

REBALANCES = Table(
    "f_rebalance",
    "every rebalance of every group",
    (
        GROUP,
        Column("generation", "int", "the generation that the rebalance led to; the epoch of a consumer or share group"),
        Column(
            "started", "timestamp", "when the rebalance, or the first one that it superseded, started; null: not known"
        ),
        Column("ended", "timestamp", "when the group became stable or empty"),
        Column("duration_ms", "bigint", "time between the two; null: not known"),
        Column(
            "duration_source",
            "string",
            "events: recorded by kgctl's broker; log: from __consumer_offsets, which holds the start of epochs, but of classic "
            "generations only the end, so those have no duration",
        ),
        Column(
            "cause",
            "string",
            "recorded by kgctl's broker, or what changed before an epoch; null: not known",
        ),
        Column("reason", "string", "the reason that the client or the admin gave"),
        Column("joined", "array<string>", "members that joined; null: not known, the group was already running"),
        Column("left", "array<string>", "members that left; null: not known"),
        Column("members", "int", "number of members in the generation"),
        Column("moved_parts", "int", "partitions that changed owner; null: not known"),
        Column("skew", "double", "partitions of the busiest member divided by the mean, 1: even; null: not known"),
        Column("commits_rejected", "bigint", "commits rejected since the previous generation; null: not known"),
        Column("group_type", "string", "classic, consumer or share; null: an older broker recorded the event"),
    ),
    day_of="ended",
)

MEMBERSHIPS = Table(
    "memberships",
    "every member that joined, returned, left or was fenced",
    (
        GROUP,
        Column("group_type", "string", "classic, consumer or share; null: an older broker recorded the event"),
        Column(
            "event",
            "string",
            "joined; left; returned: a static member is back under another member id, and the row of the old one is left; "
            "fenced: it sent an epoch that is not its own, and must rejoin",
        ),
        Column(
            "at", "timestamp", "when the rebalance ended that admitted or removed it, or when a static member returned"
        ),
        Column("cause", "string", "why it left; `member joined`: it returned under another id; null: not known"),
        Column("member_id", "string", "the member; null: the event says only how many there were"),
        Column("instance_id", "string", "the instance id of a static member; null: dynamic, or not known"),
        Column("client_id", "string", "the client id; null: not known"),
        Column("client_host", "string", "the address of the client; null: not known"),
        Column("members", "int", "1, or the number of members that the event does not name"),
        Column("generation", "int", "the generation, or the epoch of a consumer or share group"),
        Column("source", "string", "events: recorded by kgctl's broker; log: from __consumer_offsets"),
    ),
    day_of="at",
)
