"""Sessions of members and how often members come and go, from the rows about members."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from kgctl.model.history import JOINED, SESSION_TIMED_OUT
from kgctl.pipelines.schemas.group_facts import CHURN, SESSIONS
from kgctl.pipelines.transforms.membership import CAME, FENCED, LEFT, RETURNED
from kgctl.pipelines.transforms.windows import between, window

FLAPPING = 3
_MEMBER = ("group", "member_id")
_WINDOW = ("w_start", "w_end")
_TIMED_OUT = (SESSION_TIMED_OUT, "sync timed out", "rebalance timed out")
_CLIENT = ("instance_id", "client_id", "client_host")


def with_clients(memberships: DataFrame, group_events: DataFrame) -> DataFrame:
    """`memberships` with what `group_events` says about members: instances, and in events of classic groups also the hosts."""
    members = group_events.where("members is not null").select(
        "group",
        f.explode("members").alias("member"),
        f.from_json("content", ", ".join(f"{name} string" for name in _CLIENT)).alias("content"),
    )
    stored = {name: f.nullif(f.coalesce(f"member.{name}", f"content.{name}"), f.lit("")) for name in _CLIENT}
    known = members.groupBy("group", f.col("member.member_id").alias("member_id")).agg(
        *(f.max(column).alias(f"_{name}") for name, column in stored.items())
    )
    rows = memberships.join(known, [*_MEMBER], "left")
    return rows.withColumns({name: f.coalesce(name, f"_{name}") for name in _CLIENT}).select(*memberships.columns)


def sessions(memberships: DataFrame, begin_ms: int, until_ms: int) -> DataFrame:
    """The rows of SESSIONS that ended from `begin_ms` to before `until_ms`. `memberships` has all rows before `until_ms`."""
    of_member = Window.partitionBy(*_MEMBER).orderBy("at", f.col("event") == LEFT)
    came = f.when(f.col("event").isin(CAME, RETURNED), f.col("at"))
    turn = f.when(f.col("event") != FENCED, f.struct(came.alias("at")))
    before = f.last(turn, ignorenulls=True).over(of_member.rowsBetween(Window.unboundedPreceding, -1))
    rows = memberships.where("member_id is not null").withColumn("started", before["at"])
    rows = rows.where((f.col("event") == LEFT) & between("at", begin_ms, until_ms))
    session_ms = f.unix_millis("at") - f.unix_millis("started")
    return rows.withColumns({"ended": f.col("at"), "session_ms": session_ms}).select(*SESSIONS.column_names)


def churn(memberships: DataFrame, sessions: DataFrame, begin_ms: int, until_ms: int, step_ms: int) -> DataFrame:
    """The rows of CHURN for the times from `begin_ms` to before `until_ms`.

    `sessions` are those that ended in this time. One that lasted shorter than `step_ms` is short.
    """
    events = memberships.where(between("at", begin_ms, until_ms)).withColumns(window("at", begin_ms, until_ms, step_ms))
    key = ("group", "client_host", *_WINDOW)
    event, returned = f.col("event"), f.col("cause") == JOINED
    left = (event == LEFT) & ~f.coalesce(returned, f.lit(False))
    found = events.groupBy(*key).agg(
        f.max("group_type").alias("group_type"),
        _total(event == CAME).alias("joins"),
        _total(left).alias("leaves"),
        _total(left & f.col("cause").isin(*_TIMED_OUT)).alias("timed_out"),
        _total(left & f.col("cause").isNull()).alias("leaves_unexplained"),
        _total(event == RETURNED).alias("restarts"),
        _total(event == FENCED).alias("fenced"),
        f.count_distinct(f.coalesce("instance_id", "member_id")).alias("members"),
        _total(f.col("member_id").isNull()).alias("unnamed"),
        f.max("source").alias("source"),
    )
    ended = sessions.withColumns(window("ended", begin_ms, until_ms, step_ms))
    is_short = f.col("session_ms") < f.lit(step_ms)
    who = f.coalesce("instance_id", "client_id", "member_id")
    each = ended.groupBy(*key, who.alias("_who")).agg(f.count_if(is_short).alias("_short"))
    flapping = (
        each.where(f.col("_short") >= FLAPPING)
        .groupBy(*key)
        .agg(f.sort_array(f.collect_list("_who")).alias("flapping"))
    )
    lengths = ended.groupBy(*key).agg(
        f.count("session_ms").alias("sessions"),
        f.count_if(f.col("session_ms").isNull()).alias("sessions_unknown"),
        f.min("session_ms").alias("session_min_ms"),
        f.median("session_ms").alias("session_median_ms"),
        f.max("session_ms").alias("session_max_ms"),
        f.count_if(is_short).alias("short_sessions"),
    )
    rows = _with(_with(found, lengths, key), flapping, key)
    none = {name: f.coalesce(name, f.lit(0)) for name in ("sessions", "sessions_unknown", "short_sessions")}
    rows = rows.withColumns({**none, "flapping": f.coalesce("flapping", f.array().cast("array<string>"))})
    return rows.select(*CHURN.column_names)


def _total(holds: Column) -> Column:
    return f.coalesce(f.sum(f.when(holds, f.col("members"))), f.lit(0))


def _with(rows: DataFrame, others: DataFrame, key: tuple[str, ...]) -> DataFrame:
    """A host may be null, and equals null."""
    renamed = others.withColumnsRenamed({name: f"_{name}" for name in key})
    same = [f.col(name).eqNullSafe(f.col(f"_{name}")) for name in key]
    return rows.join(renamed, same, "left").drop(*(f"_{name}" for name in key))
