"""How evenly partitions, lag and traffic are spread over the members of a group, and over its partitions."""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as f

from kgctl.pipelines.schemas.group_facts import MEMBER_SKEW, PARTITION_SKEW
from kgctl.pipelines.schemas.model import Table
from kgctl.pipelines.transforms.lag import KEY

# One row for each partition of a member; a member without partitions has one, without topic. `is_known`: whether the assignment is.
ASSIGNED_DDL = (
    "`group` string, group_type string, member_id string, instance_id string, client_id string, client_host string, "
    "is_known boolean, topic string, part int"
)
_MEMBER = ("group", "group_type", "member_id", "instance_id", "client_id", "client_host")
_HELD = ("lag", "consume_rate", "produce_rate")


def newest(lag: DataFrame) -> DataFrame:
    """The rows of f_lag at its last point; every group has that point while it has committed offsets."""
    last = lag.agg(f.max("at").alias("at"))
    return lag.join(f.broadcast(last), "at")


def member_skew(assigned: DataFrame, lag: DataFrame, at_ms: int) -> DataFrame:
    """The rows of MEMBER_SKEW. `assigned` has ASSIGNED_DDL; `lag` has at most one row of f_lag for each partition of a group."""
    held = assigned.join(lag.select(*KEY, *_HELD, f.col("at").alias("lag_at")), [*KEY], "left")
    rows = held.groupBy(*_MEMBER).agg(
        f.when(f.bool_and("is_known"), f.count("topic")).alias("parts"),
        f.count_if(f.col("topic").isNotNull() & f.col("lag").isNull()).alias("parts_unknown"),
        *(f.sum(name).alias(name) for name in _HELD),
        f.max("lag_at").alias("lag_at"),
    )
    of_group = Window.partitionBy("group")
    # A member without partitions holds nothing, which is known.
    idle = f.col("parts") == 0
    rows = rows.withColumns({name: f.when(idle, 0).otherwise(f.col(name)) for name in _HELD})
    ratios = {f"{name}_ratio": _ratio(name, of_group) for name in ("parts", *_HELD)}
    rows = rows.withColumns(
        {**ratios, "at": f.timestamp_millis(f.lit(at_ms)), "group_members": f.count("*").over(of_group)}
    )
    return rows.select(*_typed(MEMBER_SKEW))


def partition_skew(assigned: DataFrame, lag: DataFrame, at_ms: int, known: Collection[str] | None = None) -> DataFrame:
    """The rows of PARTITION_SKEW, also for partitions that no member has. `lag` as in `member_skew`.

    `known`: the groups whose members are known, if these are not all.
    """
    owners = assigned.where("topic is not null").groupBy(*KEY)
    owned = owners.agg(f.sort_array(f.collect_set("member_id")).alias("members"))
    rows = owned.join(lag.select(*KEY, *_HELD, f.col("at").alias("lag_at")), [*KEY], "full")
    of_group = Window.partitionBy("group")
    ratios = {f"{name}_ratio": _ratio(name, of_group) for name in _HELD}
    share = f.col("lag") / f.nullif(f.sum("lag").over(of_group), f.lit(0))
    members = f.coalesce("members", f.array().cast("array<string>"))
    if known is not None:
        members = f.when(f.col("group").isin(*known), members)
    rows = rows.withColumns({**ratios, "lag_share": share, "members": members, "at": f.timestamp_millis(f.lit(at_ms))})
    return rows.select(*_typed(PARTITION_SKEW))


def _ratio(name: str, of_group: WindowSpec) -> Column:
    """Against the mean of those that are known; null if that is not above 0."""
    mean = f.avg(name).over(of_group)
    return f.when(mean > 0, f.col(name) / mean)


def _typed(table: Table) -> list[Column]:
    return [f.col(column.name).cast(column.type) for column in table.columns]
