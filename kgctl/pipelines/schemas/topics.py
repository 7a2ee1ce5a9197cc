"""The tables about topics: compaction, retention, transactions."""

from __future__ import annotations

from kgctl.pipelines.schemas.model import Column, Table

_AT = Column("at", "timestamp", "the time of the measurement")
_TOPIC = Column("topic", "string", "the topic")
_PART = Column("part", "int", "its partition")
_BYTES_NOTE = "compressed, as in the log: a record counts with its share of its batch"

COMPACTION = Table(
    "f_compaction",
    "what the partitions of compacted topics hold, and what compaction would free",
    (
        _TOPIC,
        _PART,
        _AT,
        Column("log_start", "bigint", "the first offset of the log"),
        Column("read_until", "bigint", "the last stable offset: compaction, and this job, read up to here"),
        Column("records", "bigint", "records without control records and without those of aborted transactions"),
        Column("bytes", "bigint", f"bytes of everything read, {_BYTES_NOTE}"),
        Column("keys", "bigint", "distinct keys, those with a tombstone as their last record included"),
        Column("records_per_key", "double", "records with a key, divided by the keys; 1: nothing to compact"),
        Column("max_records_per_key", "bigint", "records of the key that has most of them"),
        Column("no_key", "bigint", "records without a key, which compaction removes"),
        Column("superseded", "bigint", "records with a newer record of the same key"),
        Column("superseded_bytes", "bigint", "their bytes"),
        Column("tombstones", "bigint", "records with a null value"),
        Column("tombstones_due", "bigint", "tombstones, not superseded, that compaction may remove already"),
        Column("tombstones_due_bytes", "bigint", "their bytes"),
        Column(
            "oldest_tombstone",
            "timestamp",
            "the time of the oldest tombstone; far older than delete_retention_ms: compaction does not reach it",
        ),
        Column("delete_retention_ms", "bigint", "the topic's delete.retention.ms"),
        Column("aborted", "bigint", "records of aborted transactions, which compaction removes"),
        Column("aborted_bytes", "bigint", "their bytes"),
        Column("removed", "bigint", "offsets between log_start and read_until that hold no record any more"),
        Column(
            "free_bytes",
            "bigint",
            "what compaction of the whole log would free: superseded, due tombstones, no key, aborted; an upper limit, because "
            "Kafka leaves the active segment and the last min.compaction.lag.ms alone",
        ),
        Column(
            "dirty_from",
            "bigint",
            "estimate of the first offset that no compaction has reached: the first record whose key occurs before it",
        ),
        Column(
            "dirty_ratio",
            "double",
            "estimate of Kafka's dirty ratio: the share of bytes from dirty_from on, 0 to 1. Kafka counts whole segments, "
            "and not the active one; records of new keys are dirty in Kafka but not seen here",
        ),
        Column("dirty_ratio_limit", "double", "the topic's min.cleanable.dirty.ratio, above which Kafka compacts"),
        Column(
            "segment_bytes",
            "bigint",
            "the topic's segment.bytes: a smaller log may be one active segment, of which Kafka compacts nothing",
        ),
        Column("oldest_dirty", "timestamp", "the time of the record at dirty_from; null: none"),
    ),
    day_of="at",
)

COMPACTION_KEYS = Table(
    "compaction_keys",
    "of each compacted topic, the keys whose superseded records take most bytes",
    (
        _TOPIC,
        _PART,
        _AT,
        Column("rank", "int", "1: the key with the most superseded bytes of the topic"),
        Column("key", "binary", "the key"),
        Column(
            "text",
            "string",
            "the key as text: of __consumer_offsets and __transaction_state the group or id; null: it is not text",
        ),
        Column("records", "bigint", "records of this key"),
        Column("bytes", "bigint", f"their bytes, {_BYTES_NOTE}"),
        Column("superseded_bytes", "bigint", "bytes of all of them but the last"),
        Column("tombstones", "bigint", "records with a null value among them"),
        Column("last", "timestamp", "the time of the last record"),
    ),
    day_of="at",
)

RETENTION = Table(
    "f_retention",
    "how old and how large the logs of topics are, how fast they grow, and what will be deleted when",
    (
        _TOPIC,
        _PART,
        _AT,
        Column("cleanup_policy", "string", "delete, compact or both"),
        Column("log_start", "bigint", "the first offset of the log"),
        Column("log_end", "bigint", "the end of the log"),
        Column("records", "bigint", "offsets between the two; compacted topics hold fewer records"),
        Column("bytes", "bigint", "size of the log at its leader; null: the broker does not report it"),
        Column("oldest", "timestamp", "the time of the first record; null: the log is empty"),
        Column("retention_ms", "bigint", "the topic's retention.ms; null: no limit"),
        Column("retention_bytes", "bigint", "the topic's retention.bytes; null: no limit"),
        Column(
            "expired_records",
            "bigint",
            "records older than retention_ms that are still there: Kafka deletes whole segments, and not the active one",
        ),
        Column("expired_bytes", "bigint", "estimate of their bytes, at the mean size of a record"),
        Column("excess_bytes", "bigint", "bytes beyond retention_bytes"),
        Column("day_records", "bigint", "records that exceed retention_ms within a day, expired ones included"),
        Column("day_bytes", "bigint", "estimate of their bytes"),
        Column("next_expiry", "timestamp", "when the first record exceeds retention_ms; null: no limit, or empty"),
        Column("growth_records", "double", "records per day, from the last day or from the age of a younger log"),
        Column("growth_bytes", "double", "estimate of bytes per day"),
        Column("size_limit_at", "timestamp", "when the log reaches retention_bytes at this growth; null: never"),
        Column(
            "expected_bytes", "double", "estimate of its size once retention limits it, at this growth; null: no limit"
        ),
        Column(
            "log_start_moved",
            "bigint",
            "offsets by which log_start moved since the row before; null: first row, or it moved back",
        ),
        Column("deleted_records", "double", "the same per day"),
    ),
    day_of="at",
)

LOG_AGES = Table(
    "log_ages",
    "records and bytes of each partition by age",
    (
        _TOPIC,
        _PART,
        _AT,
        Column("age_from_s", "bigint", "at least this old, in seconds"),
        Column("age_to_s", "bigint", "younger than this; null: no limit"),
        Column("first_offset", "bigint", "the first offset of this age"),
        Column("end_offset", "bigint", "the offset after the last"),
        Column("records", "bigint", "offsets between the two; compacted topics hold fewer records"),
        Column("bytes", "bigint", "estimate of their bytes, at the mean size of a record; null: not known"),
    ),
    day_of="at",
)

_ID = Column("transactional_id", "string", "the transactional id")
_PARTITIONS_DDL = "array<struct<topic: string, parts: array<int>>>"

TRANSACTIONS = Table(
    "f_transaction",
    "every transaction that ended",
    (
        _ID,
        Column("producer_id", "bigint", "the producer id"),
        Column("producer_epoch", "int", "its epoch during the transaction; after it, if the start is not in the log"),
        Column("outcome", "string", "committed or aborted"),
        Column("started", "timestamp", "when the first partition was added; null: not known"),
        Column(
            "decided", "timestamp", "when the coordinator decided to commit or abort; null: not in the log any more"
        ),
        Column("ended", "timestamp", "when all markers were written"),
        Column(
            "duration_ms", "bigint", "from started to ended, while readers of committed records waited; null: not known"
        ),
        Column("markers_ms", "bigint", "from decided to ended: the time to write the markers; null: not known"),
        Column("timeout_ms", "bigint", "the producer's transaction.timeout.ms"),
        Column("timed_out", "boolean", "aborted, and not before its timeout; null: not known"),
        Column(
            "partitions", _PARTITIONS_DDL, "its partitions, __consumer_offsets included; null: not in the log any more"
        ),
        Column("partition_count", "int", "how many they are; null: not known"),
        Column("log_partition", "int", "the partition of __transaction_state that holds the last record"),
        Column("log_offset", "bigint", "the record's offset there"),
    ),
    day_of="ended",
)

PRODUCERS = Table(
    "f_producer",
    "each transactional id: share of aborted transactions, durations, its state now",
    (
        _ID,
        _AT,
        Column("transactions", "bigint", "transactions in f_transaction"),
        Column("committed", "bigint", "of these committed"),
        Column("aborted", "bigint", "of these aborted"),
        Column("aborted_share", "double", "aborted divided by transactions; null: there are none"),
        Column("timed_out", "bigint", "of the aborted, those that reached their timeout"),
        Column("mean_ms", "double", "mean duration; null: not known"),
        Column("p95_ms", "double", "95 of 100 transactions were at most this long; null: not known"),
        Column("max_ms", "bigint", "the longest; null: not known"),
        Column("first_ended", "timestamp", "the end of the first of them"),
        Column("last_ended", "timestamp", "the end of the last of them"),
        Column(
            "state", "string", "the state now: Empty, Ongoing, CompleteCommit, ...; null: the coordinator forgot the id"
        ),
        Column("producer_id", "bigint", "the producer id now"),
        Column("producer_epoch", "int", "its epoch now"),
        Column("open_since", "timestamp", "the start of its open transaction; null: none"),
        Column("open_ms", "bigint", "how long it has been open"),
        Column("open_partitions", _PARTITIONS_DDL, "the partitions of the open transaction"),
        Column("timeout_ms", "bigint", "the producer's transaction.timeout.ms"),
    ),
    day_of="at",
)

HOLDS = Table(
    "f_hold",
    "partitions whose last stable offset an open transaction holds: readers of committed records wait there",
    (
        _TOPIC,
        _PART,
        _AT,
        Column("last_stable", "bigint", "the last stable offset"),
        Column("log_end", "bigint", "the end of the log"),
        Column("waiting", "bigint", "offsets between the two, which readers of committed records do not see"),
        Column("producer_id", "bigint", "the producer of the transaction that starts there; null: not known"),
        _ID,
        Column(
            "held_ms",
            "bigint",
            "age of the transaction; if no coordinator knows it, of its last record; null: not known",
        ),
        Column(
            "hanging",
            "boolean",
            "true: no coordinator knows the producer, so nothing will end the transaction; see `kgctl transactions find-hanging`",
        ),
    ),
    day_of="at",
)
