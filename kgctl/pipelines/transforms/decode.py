"""Decodes the records of __consumer_offsets into rows: commits, records about groups, and undecodable records."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from broker.protocol.offsets_topic import OffsetCommitValue
from kgctl.pipelines.schemas.groups import COMMITS, GROUP_EVENTS, MEMBER_DDL, QUARANTINE
from kgctl.pipelines.schemas.sources import RAW_COLUMNS, RAW_DDL
from kgctl.pipelines.transforms import wire
from kgctl.pipelines.transforms.group_values import is_group_value, read_group, read_newer
from kgctl.pipelines.transforms.key_kinds import GROUP_METADATA_KEY, KEY_KINDS, OFFSET_COMMIT_KEYS
from kgctl.pipelines.transforms.times import known_time
from kgctl.pipelines.transforms.wire import Step

COMMIT, GROUP, SKIPPED, BAD = "commit", "group", "skipped", "bad"

MALFORMED_KEY, UNKNOWN_KEY = "malformed key", "unknown key version"
MALFORMED_VALUE, UNKNOWN_VALUE = "malformed value", "unknown value version"

DECODED_DDL = (
    f"{RAW_DDL}, key_version int, value_version int, `group` string, second string, read_topic string, read_part int, "
    "committed bigint, leader_epoch int, metadata string, commit_ms bigint, expire_ms bigint, member_epoch int, "
    "reason string, kind string"
)

_KNOWN_KEYS = (*OFFSET_COMMIT_KEYS, *(kind.version for kind in KEY_KINDS))
_TWO_TEXTS = (*OFFSET_COMMIT_KEYS, *(kind.version for kind in KEY_KINDS if kind.second))
_WITH_MEMBER = [kind.version for kind in KEY_KINDS if kind.has_member]
_EPOCH_FIRST = [kind.version for kind in KEY_KINDS if kind.epoch_first]
_MEMBER_FIELDS = 7
_FLEXIBLE = OffsetCommitValue.FLEXIBLE_SINCE
_LEADER_EPOCH_SINCE, _EXPIRY_IN = 3, 1


def decode(raw: DataFrame) -> DataFrame:
    """Every record of the topic as one row of DECODED_DDL; `kind` says which table it belongs to.

    `commit` and `group` records are decoded, or are tombstones. `bad` records cannot be decoded, for the `reason`. `skipped`
    records have neither key nor value. Values are those of the record: -1 is not null yet.
    """
    rows = raw.select(*[column.name for column in RAW_COLUMNS])
    for layer in (
        _key_head,
        _key_group,
        _key_second,
        _value_head,
        _value_sizes,
        _value_metadata,
        _value_times,
        _reason,
    ):
        rows = rows.withColumns(layer())
    kind = (
        f.when(f.col("key").isNull() & f.col("value").isNull(), SKIPPED)
        .when(f.col("reason").isNotNull(), BAD)
        .when(f.col("key_version").isin(*OFFSET_COMMIT_KEYS), COMMIT)
        .otherwise(GROUP)
    )
    # A nondeterministic column, which the optimizer must not move: it would otherwise push filters on it below the layers,
    # and inline all layers many times into one expression, beyond the size of a Java method.
    fixed = f.when(f.spark_partition_id() >= 0, kind)
    return rows.withColumn("kind", fixed).select(*_names(DECODED_DDL))


def commits(decoded: DataFrame) -> DataFrame:
    """The rows of COMMITS."""
    rows = decoded.where(f.col("kind") == COMMIT).select(
        "group",
        f.col("read_topic").alias("topic"),
        f.col("read_part").alias("part"),
        "committed",
        _or_null("leader_epoch", "int"),
        "metadata",
        known_time("commit_ms").alias("commit_ts"),
        known_time("expire_ms").alias("expire_ts"),
        f.col("value_version").cast("smallint").alias("value_version"),
        f.col("value").isNull().alias("tombstone"),
        *_log_columns(),
    )
    return rows.select(*COMMITS.column_names)


def group_events(decoded: DataFrame) -> DataFrame:
    """The rows of GROUP_EVENTS.

    For newer group types a row has the kind of the record, the epoch if the value begins with one, the member if the key
    names one, and the whole value as JSON.
    """
    is_classic = f.col("key_version") == GROUP_METADATA_KEY
    rows = decoded.where(f.col("kind") == GROUP).withColumn("_value", read_group(f.when(is_classic, f.col("value"))))
    rows = rows.select(
        "group",
        _by_key("group_type").alias("group_type"),
        _by_key("name").alias("kind"),
        f.col("_value.generation").alias("generation"),
        "member_epoch",
        f.col("_value.protocol_type").alias("protocol_type"),
        f.col("_value.protocol").alias("protocol"),
        f.col("_value.leader").alias("leader"),
        known_time("_value.state_ms").alias("state_ts"),
        f.col("value").isNull().alias("tombstone"),
        f.when(f.col("key_version").isin(_WITH_MEMBER), _one_member())
        .otherwise(f.col("_value.members"))
        .alias("members"),
        f.col("value_version").cast("smallint").alias("value_version"),
        read_newer(f.when(~is_classic, f.col("key")), f.col("value")).alias("content"),
        *_log_columns(),
    )
    return rows.select(*GROUP_EVENTS.column_names)


def quarantine(decoded: DataFrame) -> DataFrame:
    """The rows of QUARANTINE."""
    return decoded.where(f.col("kind") == BAD).select(*QUARANTINE.column_names)


# ---- layers: each may use the columns of the layers before it ---------------------------------------------------


def _key_head() -> dict[str, Column]:
    key = f.col("key")
    return {"key_version": wire.int16(key, _at(1)), "_group_size": wire.int16(key, _at(3)).cast("bigint")}


def _key_group() -> dict[str, Column]:
    key, size = f.col("key"), f.col("_group_size")
    return {
        "group": wire.text(key, _at(5), size),
        "_second_at": f.when(size >= 0, size + 7),
        "_second_size": f.when(size >= 0, wire.int16(key, size + 5).cast("bigint")),
    }


def _key_second() -> dict[str, Column]:
    key, at, size = f.col("key"), f.col("_second_at"), f.col("_second_size")
    second = f.when(f.col("key_version").isin(*_TWO_TEXTS), wire.text(key, at, size))
    return {
        "second": second,
        "read_part": f.when(f.col("key_version").isin(*OFFSET_COMMIT_KEYS) & (size >= 0), wire.int32(key, at + size)),
    }


def _value_head() -> dict[str, Column]:
    value, is_commit = f.col("value"), f.col("key_version").isin(*OFFSET_COMMIT_KEYS)
    version = wire.int16(value, _at(1))
    metadata_at = f.when(version >= _LEADER_EPOCH_SINCE, 15).otherwise(11).cast("bigint")
    return {
        "read_topic": f.when(is_commit, f.col("second")),
        "value_version": version,
        "_is_commit": is_commit & version.between(0, _FLEXIBLE),
        "_metadata_at": metadata_at,
        "member_epoch": f.when(f.col("key_version").isin(_EPOCH_FIRST) & (version == 0), wire.int32(value, _at(3))),
    }


def _value_sizes() -> dict[str, Column]:
    size = wire.int16(f.col("value"), f.col("_metadata_at")).cast("bigint")
    return {"_metadata_size": f.when(f.col("_is_commit") & (f.col("value_version") < _FLEXIBLE), size)}


def _value_metadata() -> dict[str, Column]:
    value, at, version = f.col("value"), f.col("_metadata_at"), f.col("value_version")

    size, start = f.col("_metadata_size"), at + 2
    plain = f.struct(wire.text(value, start, size).alias("value"), (start + size).alias("next"))
    read = f.when(version == _FLEXIBLE, wire.compact_text(value, at)).otherwise(plain)
    return {
        "committed": f.when(f.col("_is_commit"), wire.int64(value, _at(3))),
        "leader_epoch": f.when(f.col("_is_commit") & (version >= _LEADER_EPOCH_SINCE), wire.int32(value, _at(11))),
        "_metadata": f.when(f.col("_is_commit"), read),
    }


def _value_times() -> dict[str, Column]:
    value, after = f.col("value"), f.col("_metadata.next")
    whole = f.col("_metadata.value").isNotNull()
    tagged = wire.walk(value, wire.steps([Step.TAGGED_FIELDS]), after + 8)
    return {
        "metadata": f.col("_metadata.value"),
        "commit_ms": f.when(whole, wire.int64(value, after)),
        "expire_ms": f.when(whole & (f.col("value_version") == _EXPIRY_IN), wire.int64(value, after + 8)),
        "_tags_read": f.when(whole & (f.col("value_version") == _FLEXIBLE), tagged.isNotNull()),
    }


def _reason() -> dict[str, Column]:
    key_version, version = f.col("key_version"), f.col("value_version")
    is_commit, is_classic = key_version.isin(*OFFSET_COMMIT_KEYS), key_version == GROUP_METADATA_KEY
    bad_key = (
        f.col("group").isNull()
        | (key_version.isin(*_TWO_TEXTS) & f.col("second").isNull())
        | (is_commit & f.col("read_part").isNull())
    )
    known = f.when(is_commit | is_classic, version.between(0, 4)).otherwise(version == 0)
    bad_commit = (
        f.col("commit_ms").isNull()
        | ((version == _EXPIRY_IN) & f.col("expire_ms").isNull())
        | ((version == _FLEXIBLE) & ~f.col("_tags_read"))
    )
    bad_value = (
        f.when(is_commit, bad_commit)
        .when(is_classic, ~f.coalesce(is_group_value(f.col("value"), version), f.lit(False)))
        .otherwise(key_version.isin(_EPOCH_FIRST) & f.col("member_epoch").isNull())
    )
    reason = (
        f.when(key_version.isNull(), f.when(f.col("key").isNotNull() | f.col("value").isNotNull(), MALFORMED_KEY))
        .when(~key_version.isin(*_KNOWN_KEYS), UNKNOWN_KEY)
        .when(bad_key, MALFORMED_KEY)
        .when(f.col("value").isNull(), None)
        .when(version.isNull(), MALFORMED_VALUE)
        .when(~known, UNKNOWN_VALUE)
        .when(bad_value, MALFORMED_VALUE)
    )
    return {"reason": reason}


# ---- columns ----------------------------------------------------------------------------------------------------


def _at(position: int) -> Column:
    return f.lit(position).cast("bigint")


def _or_null(name: str, type_name: str) -> Column:
    """In Kafka -1 means unknown."""
    return f.when(f.col(name) >= 0, f.col(name)).cast(type_name).alias(name)


def _by_key(attribute: str) -> Column:
    kinds = [part for kind in KEY_KINDS for part in (f.lit(kind.version), f.lit(getattr(kind, attribute)))]
    return f.create_map(*kinds)[f.col("key_version")]


def _one_member() -> Column:
    """An array with one member, of which only the id is known."""
    unknown = [f.lit(None)] * (_MEMBER_FIELDS - 1)
    return f.array(f.struct(f.col("second"), *unknown).cast(MEMBER_DDL))


def _log_columns() -> list[Column]:
    return [
        f.col("partition").alias("log_partition"),
        f.col("offset").alias("log_offset"),
        f.col("timestamp").alias("log_ts"),
    ]


def _names(ddl: str) -> list[str]:
    return [part.split()[0].strip("`") for part in ddl.split(", ")]
