"""What the logs of compacted topics hold, and what compaction would free, from a scan of their records.

Everything is aggregated on the raw keys: only rows per partition and the few worst keys ever leave Spark.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from kgctl.pipelines.schemas import topics as schemas
from kgctl.pipelines.schemas.sources import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kgctl.pipelines.transforms import wire
from kgctl.pipelines.transforms.key_kinds import OFFSET_COMMIT_KEYS
from kgctl.pipelines.transforms.times import known_ms, known_time

KEY = ("topic", "part")
RECORD, CHUNK = 0, 1
# Of a RECORD: its key, offset, time, size in the log, and the time until which compaction keeps it (KIP-534) if that is set.
# Of a CHUNK, a few batches that follow each other: first and last offset, size of all batches; in `key`, its first offset.
SCAN_DDL = (
    "topic string, part int, kind tinyint, key binary, offset bigint, last_offset bigint, ts_ms bigint, bytes double, "
    "is_tombstone boolean, horizon_ms bigint, aborted bigint, aborted_bytes double, control bigint"
)
FACTS_DDL = (
    "topic string, part int, log_start bigint, read_until bigint, delete_retention_ms bigint, dirty_ratio_limit double, "
    "segment_bytes bigint"
)
WORST_KEYS = 10


def by_key(scanned: DataFrame) -> DataFrame:
    """One row for each key of a partition, and one for each chunk; the order of the rows of `scanned` does not matter."""
    return scanned.groupBy(*KEY, "kind", "key").agg(
        f.count("*").alias("records"),
        f.sum("bytes").alias("bytes"),
        f.min("offset").alias("first"),
        f.max("last_offset").alias("last"),
        # The second record of a key is the first one that shows that no compaction has been here.
        f.get(f.min_by("offset", "offset", 2), f.lit(1)).alias("second"),
        f.get(f.min_by("ts_ms", "offset", 2), f.lit(1)).alias("second_ms"),
        f.max_by("bytes", "offset").alias("last_bytes"),
        f.max_by("ts_ms", "offset").alias("last_ms"),
        f.max_by("is_tombstone", "offset").alias("ends_in_tombstone"),
        f.max_by("horizon_ms", "offset").alias("last_horizon_ms"),
        f.count_if("is_tombstone").alias("tombstones"),
        f.min(f.when(f.col("is_tombstone"), f.col("ts_ms"))).alias("oldest_tombstone_ms"),
        f.sum("aborted").alias("aborted"),
        f.sum("aborted_bytes").alias("aborted_bytes"),
        f.sum("control").alias("control"),
    )


def compaction(keys: DataFrame, facts: DataFrame, now_ms: int) -> DataFrame:
    """The rows of schemas.COMPACTION. `keys` comes from `by_key`; `facts`, of FACTS_DDL, has a row for each partition."""
    with_key = (f.col("kind") == RECORD) & f.col("key").isNotNull()
    without_key = (f.col("kind") == RECORD) & f.col("key").isNull()
    known = keys.join(f.broadcast(facts.select(*KEY, "delete_retention_ms")), list(KEY))
    kept_until_ms = f.coalesce("last_horizon_ms", known_ms("last_ms") + f.col("delete_retention_ms"))
    is_due = with_key & f.col("ends_in_tombstone") & (kept_until_ms <= now_ms)
    counted = known.groupBy(*KEY).agg(
        _sum("records", f.col("kind") == RECORD).alias("records"),
        _sum("bytes", f.col("kind") == CHUNK).alias("bytes"),
        f.count_if(with_key).alias("keys"),
        _sum("records", with_key).alias("_with_key"),
        f.max(f.when(with_key, f.col("records"))).alias("max_records_per_key"),
        _sum("records", without_key).alias("no_key"),
        _sum("bytes", without_key).alias("_no_key_bytes"),
        f.sum(f.when(with_key, f.col("bytes") - f.col("last_bytes")).otherwise(0)).alias("superseded_bytes"),
        _sum("tombstones", f.col("kind") == RECORD).alias("tombstones"),
        f.count_if(is_due).alias("tombstones_due"),
        _sum("last_bytes", is_due).alias("tombstones_due_bytes"),
        f.min("oldest_tombstone_ms").alias("_oldest_tombstone_ms"),
        f.coalesce(f.sum("aborted"), f.lit(0)).alias("aborted"),
        f.coalesce(f.sum("aborted_bytes"), f.lit(0.0)).alias("aborted_bytes"),
        f.coalesce(f.sum("control"), f.lit(0)).alias("_control"),
        f.min(f.when(with_key, f.col("second"))).alias("dirty_from"),
        f.min_by(f.when(with_key, f.col("second_ms")), f.when(with_key, f.col("second"))).alias("_oldest_dirty_ms"),
    )
    rows = facts.join(counted, list(KEY), "left")
    rows = rows.fillna(
        0,
        [
            *("records", "keys", "_with_key", "no_key", "tombstones", "tombstones_due", "aborted", "_control"),
            *("bytes", "superseded_bytes", "tombstones_due_bytes", "aborted_bytes", "_no_key_bytes"),
        ],
    )
    rows = rows.join(_dirty_bytes(keys, counted), list(KEY), "left")
    free = f.col("superseded_bytes") + f.col("tombstones_due_bytes") + f.col("aborted_bytes") + f.col("_no_key_bytes")
    read = f.col("read_until") - f.col("log_start")
    rows = rows.withColumns(
        {
            "at": f.timestamp_millis(f.lit(now_ms)),
            "records_per_key": f.when(f.col("keys") > 0, f.col("_with_key") / f.col("keys")),
            "superseded": f.col("_with_key") - f.col("keys"),
            "oldest_tombstone": known_time("_oldest_tombstone_ms"),
            "removed": f.greatest(read - f.col("records") - f.col("aborted") - f.col("_control"), f.lit(0)),
            "free_bytes": free,
            "dirty_ratio": f.when(f.col("bytes") > 0, f.coalesce("_dirty_bytes", f.lit(0.0)) / f.col("bytes")),
            "oldest_dirty": known_time("_oldest_dirty_ms"),
        }
    )
    return _rounded(rows, schemas.COMPACTION.column_names)


def worst_keys(keys: DataFrame, now_ms: int) -> DataFrame:
    """The rows of schemas.COMPACTION_KEYS: of each topic, up to WORST_KEYS keys that are there more than once."""
    rows = keys.where((f.col("kind") == RECORD) & f.col("key").isNotNull() & (f.col("records") > 1))
    rows = rows.withColumn("superseded_bytes", f.col("bytes") - f.col("last_bytes"))
    # Shares of batches are fractions: the sum of the same sizes differs with the order of adding them up.
    worst_first = Window.partitionBy("topic").orderBy(
        f.desc(f.round("superseded_bytes")), f.desc("records"), "part", "key"
    )
    rows = rows.withColumn("rank", f.row_number().over(worst_first)).where(f.col("rank") <= WORST_KEYS)
    rows = rows.withColumns(
        {
            "at": f.timestamp_millis(f.lit(now_ms)),
            "text": _text(),
            "last": known_time("last_ms"),
        }
    )
    return _rounded(rows, schemas.COMPACTION_KEYS.column_names)


def _text() -> Column:
    """The key as text: of internal topics decoded, of others if it is printable."""
    key, topic = f.col("key"), f.col("topic")
    plain = f.try_validate_utf8(key.cast("string"))
    size = wire.int16(key, f.lit(3))
    name, second = wire.text(key, f.lit(5), size), size + 5
    second_size = wire.int16(key, second)
    commit = f.concat(
        name,
        f.lit(" "),
        wire.text(key, second + 2, second_size),
        f.lit("-"),
        wire.int32(key, second + 2 + second_size),
    )
    decoded = f.when((topic == OFFSETS_TOPIC) & wire.int16(key, f.lit(1)).isin(*OFFSET_COMMIT_KEYS), commit).when(
        topic.isin(OFFSETS_TOPIC, TRANSACTIONS_TOPIC), name
    )
    return f.coalesce(decoded, f.when(~plain.rlike("[\\x00-\\x08]"), plain))


def _dirty_bytes(keys: DataFrame, counted: DataFrame) -> DataFrame:
    """(topic, part, _dirty_bytes): the bytes of the chunks from `dirty_from` on, of the one that it divides a part."""
    dirty = counted.where("dirty_from is not null").select(*KEY, "dirty_from")
    chunks = keys.where(f.col("kind") == CHUNK).join(f.broadcast(dirty), list(KEY)).where("last >= dirty_from")
    share = (f.col("last") + 1 - f.greatest("first", "dirty_from")) / (f.col("last") + 1 - f.col("first"))
    return chunks.groupBy(*KEY).agg(f.sum(f.col("bytes") * share).alias("_dirty_bytes"))


def _sum(name: str, where: Column) -> Column:
    return f.sum(f.when(where, f.col(name)).otherwise(0))


def _rounded(rows: DataFrame, names: tuple[str, ...]) -> DataFrame:
    whole = {name: f.round(name).cast("bigint") for name in names if name.endswith("bytes")}
    return rows.withColumns(whole).select(*names)
