"""The tables that are computed from those of groups: commits, churn, skew and anomalies. Does not import Spark."""

from __future__ import annotations

from kgctl.pipelines.schemas.groups import GROUP, PART, TOPIC
from kgctl.pipelines.schemas.model import Column, Table

_WINDOW = (
    Column("w_start", "timestamp", "the begin of the window"),
    Column("w_end", "timestamp", "its end, which does not belong to it"),
)

COMMIT_RATES = Table(
    "f_commit",
    "how often each group committed, in windows of --step; a window without commits has no row",
    (
        GROUP,
        TOPIC,
        PART,
        *_WINDOW,
        Column("commits", "bigint", "commits in the window, without deletions"),
        Column("rate", "double", "commits per second"),
        Column("first", "bigint", "the first offset that was committed in the window"),
        Column("last", "bigint", "the last one"),
        Column(
            "advanced",
            "bigint",
            "records by which commits moved the offset forward; null: the commit before is not known",
        ),
        Column("rewinds", "bigint", "commits of an offset below the one before"),
        Column("rewound", "bigint", "records by which these moved the offset back"),
        Column(
            "unmoved_share",
            "double",
            "share of the commits that moved nothing, 0 to 1; null: the commit before is not known",
        ),
        Column(
            "gap_max_ms", "bigint", "longest time since the commit before, ms; null: the commit before is not known"
        ),
        Column("gap_median_ms", "double", "median of these times, ms"),
        Column("deletions", "bigint", "how often the commit was deleted or expired"),
        Column(
            "complete",
            "double",
            "share of the records of its log partition in the window that are left, 0 to 1; below 1, compaction removed some and "
            "the counts are lower bounds, or transactions ended, which takes records too; null: not known",
        ),
    ),
    day_of="w_start",
)

_SOURCE = Column("source", "string", "events: recorded by kgctl's broker; log: from __consumer_offsets")
_HOST = Column("client_host", "string", "the address of the client; null: not known")
_TYPE = Column("group_type", "string", "classic, consumer or share; null: not known")

SESSIONS = Table(
    "f_session",
    "every session of a member that ended: from joining the group to leaving it",
    (
        GROUP,
        _TYPE,
        Column("member_id", "string", "the member; a static member that returns has another one, and another session"),
        Column("instance_id", "string", "the instance id of a static member; null: dynamic, or not known"),
        Column("client_id", "string", "the client id; null: not known"),
        _HOST,
        Column(
            "started", "timestamp", "when the member joined or returned; null: before the first record that was read"
        ),
        Column("ended", "timestamp", "when it left, or its successor returned"),
        Column("session_ms", "bigint", "time between the two; null: not known"),
        Column("cause", "string", "why it ended; `member joined`: a static member returned; null: not known"),
        _SOURCE,
    ),
    day_of="ended",
)

CHURN = Table(
    "f_churn",
    "how often members of each group came and left, per client host, in windows of 60 --step; without changes there is no row",
    (
        GROUP,
        _TYPE,
        _HOST,
        *_WINDOW,
        Column("joins", "bigint", "members that joined, without static members that returned"),
        Column("leaves", "bigint", "members that left, without static members that returned"),
        Column("timed_out", "bigint", "of these, the ones whose session, sync or rebalance timed out"),
        Column("leaves_unexplained", "bigint", "of these, the ones that left for a reason that is not known"),
        Column("restarts", "bigint", "static members that returned under another member id"),
        Column("fenced", "bigint", "members that sent an epoch that was not their own"),
        Column("members", "bigint", "different members among all of these; a static member counts once"),
        Column("unnamed", "bigint", "joins and leaves of members that the event counts and does not name"),
        Column("sessions", "bigint", "sessions that ended, of known length"),
        Column("sessions_unknown", "bigint", "sessions that ended, of unknown length"),
        Column("session_min_ms", "bigint", "the shortest of the sessions of known length, ms"),
        Column("session_median_ms", "double", "their median, ms"),
        Column("session_max_ms", "bigint", "the longest of them, ms"),
        Column("short_sessions", "bigint", "sessions that were shorter than a window"),
        Column("flapping", "array<string>", "instance ids, else client ids, with three or more short sessions"),
        _SOURCE,
    ),
    day_of="w_start",
)

_HELD = (
    Column("lag", "bigint", "their lag in records; null: not known"),
    Column("consume_rate", "double", "records of them that the group commits per second; null: not known"),
    Column("produce_rate", "double", "records appended to them per second; null: not known"),
)
_LAG_AT = Column("lag_at", "timestamp", "the point of f_lag that lag and rates are from; null: there is none")

MEMBER_SKEW = Table(
    "f_member_skew",
    "what each member of a group holds, against the mean of its members",
    (
        GROUP,
        _TYPE,
        Column("at", "timestamp", "when the cluster was asked for the members"),
        Column("member_id", "string", "the member"),
        Column("instance_id", "string", "the instance id of a static member; null: dynamic"),
        Column("client_id", "string", "the client id"),
        _HOST,
        Column("group_members", "int", "the number of members of the group"),
        Column("parts", "int", "partitions of the member; null: its assignment cannot be read"),
        Column("parts_unknown", "int", "of these, the ones whose lag is not known, as in share groups"),
        *_HELD,
        Column(
            "parts_ratio", "double", "its partitions divided by the mean of the members, 1: even; null: all have none"
        ),
        Column("lag_ratio", "double", "the same for its lag"),
        Column("consume_rate_ratio", "double", "the same for the rate at which the group consumes its partitions"),
        Column("produce_rate_ratio", "double", "the same for the rate at which they grow"),
        _LAG_AT,
    ),
    day_of="at",
)

PARTITION_SKEW = Table(
    "f_partition_skew",
    "the lag and traffic of each partition of a group, against the mean of its partitions",
    (
        GROUP,
        TOPIC,
        PART,
        Column("at", "timestamp", "when the cluster was asked for the members"),
        Column(
            "members",
            "array<string>",
            "the members that have the partition; several in a share group; empty: no member has it; null: not known",
        ),
        *_HELD,
        Column("lag_share", "double", "its share of the lag of the group, 0 to 1; null: there is none"),
        Column(
            "lag_ratio", "double", "its lag divided by the mean of the partitions, 1: even; null: no partition has lag"
        ),
        Column("consume_rate_ratio", "double", "the same for the rate at which the group consumes it"),
        Column("produce_rate_ratio", "double", "the same for the rate at which it grows"),
        _LAG_AT,
    ),
    day_of="at",
)


_METRIC = Column(
    "metric", "string", "lag (records behind), commit rate (commits per second) or rebalances (their number)"
)
_USUAL = (
    Column("median", "double", "the median of the values that are the baseline; null: there are too few"),
    Column("low", "double", "the usual range is from here"),
    Column("high", "double", "to here"),
)
_BASIS = Column(
    "basis",
    "string",
    "what the range is from: the same `hour of week` in at least 3 of the last 6 weeks, else the same `hour of day` on at least 3 of "
    "the last 14 days, else `recent`: at least 24 of the last 288 buckets; null: there are too few",
)

EXPECTED = Table(
    "f_expected",
    "what each group did in buckets of 5 --step, and what is usual for it at this time",
    (
        GROUP,
        _METRIC,
        Column("at", "timestamp", "the begin of the bucket"),
        Column("until", "timestamp", "its end"),
        Column("value", "double", "the highest lag, the mean commit rate or the number of rebalances in the bucket"),
        *_USUAL,
        Column("spread", "double", "the usual deviation, and at least what does not count"),
        Column(
            "score",
            "double",
            "distance from the range in spreads, negative below it; 0: in the range, or lower in a way that does no harm; null: no range",
        ),
        _BASIS,
        Column("observations", "int", "number of values that the range is from"),
    ),
    day_of="at",
)

ANOMALIES = Table(
    "anomalies",
    "when a group left its usual range for three buckets or longer, and when it was back",
    (
        GROUP,
        _METRIC,
        Column("event", "string", "started or ended; the last row of a group and metric says whether it is anomalous"),
        Column("at", "timestamp", "when this was certain: three buckets later"),
        Column("since", "timestamp", "when the first unusual bucket began"),
        Column("ended", "timestamp", "when the first usual bucket began; null: the anomaly has not ended"),
        Column("value", "double", "the value at `at`"),
        Column("worst", "double", "the value furthest from the range so far"),
        *_USUAL,
        Column("spread", "double", "the usual deviation when it started"),
        Column("score", "double", "distance of the worst value from the range, in spreads; negative below it"),
        _BASIS,
        Column("reason", "string", "all this in words"),
    ),
    day_of="at",
    verdicts=("ANOMALOUS", "OK"),
)
