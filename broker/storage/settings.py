"""Settings of the log: durability, and broker-wide defaults of topic configs."""

from __future__ import annotations

from broker.light_named_tuples import NamedTuple

MAX_INT64 = 2**63 - 1
DAY_MS = 86_400_000
HOUR_MS = 3_600_000


class LogSettings(NamedTuple):
    """Defaults are Kafka's. The comment on each field names its broker option."""

    durability: str = "power"  # "power": acknowledged means synced; "process": survives kill -9 only

    segment_bytes: int = 1 << 30  # log.segment.bytes
    segment_ms: int = 7 * DAY_MS  # log.roll.ms, log.roll.hours
    index_interval_bytes: int = 4096  # log.index.interval.bytes
    message_max_bytes: int = 1_048_588  # message.max.bytes
    message_timestamp_type: str = "CreateTime"  # log.message.timestamp.type
    message_timestamp_before_max_ms: int = MAX_INT64  # log.message.timestamp.before.max.ms
    message_timestamp_after_max_ms: int = HOUR_MS  # log.message.timestamp.after.max.ms

    cleanup_policy: str = "delete"  # log.cleanup.policy
    retention_ms: int = 7 * DAY_MS  # log.retention.ms, .minutes, .hours; -1: unlimited
    retention_bytes: int = -1  # log.retention.bytes
    retention_check_interval_ms: int = 300_000  # log.retention.check.interval.ms

    delete_retention_ms: int = DAY_MS  # log.cleaner.delete.retention.ms
    min_compaction_lag_ms: int = 0  # log.cleaner.min.compaction.lag.ms
    max_compaction_lag_ms: int = MAX_INT64  # log.cleaner.max.compaction.lag.ms
    min_cleanable_dirty_ratio: float = 0.5  # log.cleaner.min.cleanable.ratio
    compaction_interval_ms: int = 15_000  # log.cleaner.backoff.ms

    producer_id_expiration_ms: int = DAY_MS  # producer.id.expiration.ms
    producer_id_expiration_check_interval_ms: int = 600_000  # producer.id.expiration.check.interval.ms

    offsets_topic_partitions: int = 50  # offsets.topic.num.partitions; fixed when the data directory is created
    offsets_topic_segment_bytes: int = 100 << 20  # offsets.topic.segment.bytes
    transactions_topic_partitions: int = 50  # transaction.state.log.num.partitions; fixed when the topic is created
    transactions_topic_segment_bytes: int = 100 << 20  # transaction.state.log.segment.bytes
    share_state_topic_partitions: int = (
        50  # share.coordinator.state.topic.num.partitions; fixed when the topic is created
    )
    share_state_topic_segment_bytes: int = 100 << 20  # share.coordinator.state.topic.segment.bytes

    max_open_segments: int | None = None  # None: a quarter of the limit on open files
