"""Kafka's topic configs: name, type, default, validation, and the broker option that sets the default."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from broker.light_named_tuples import NamedTuple
from broker.storage.settings import DAY_MS, HOUR_MS, MAX_INT64, LogSettings

MAX_INT32 = 2**31 - 1


class TopicConfig(NamedTuple):
    name: str
    type: str  # Kafka's names: BOOLEAN, STRING, INT, LONG, DOUBLE, LIST
    default: str
    synonym: str | None  # the broker option that sets the default of all topics
    used: bool  # false: accepted but ignored, as it has no effect on a single node
    problem: Callable[[str], str | None]  # the reason why a value is invalid, or None

    def check(self, value: str) -> None:
        """Raise ValueError with a message like Kafka's for an invalid value."""
        problem = self.problem(value)
        if problem is not None:
            raise ValueError(f"Invalid value {value} for configuration {self.name}: {problem}")

    def shown(self, value: str) -> str:
        """A valid value as Kafka shows it: parsed and written again."""
        match self.type:
            case "BOOLEAN":
                return value.strip().lower()
            case "INT" | "LONG":
                return str(int(value))
            case "DOUBLE":
                return str(float(value))
            case "LIST":
                return ",".join(list_items(value))
        return value


def list_items(value: str) -> list[str]:
    """The items of a list, which may be empty."""
    return [item.strip() for item in value.split(",")] if value.strip() else []


def _integer(low: int, high: int) -> Callable[[str], str | None]:
    def problem(value: str) -> str | None:
        try:
            number = int(value.strip())
        except ValueError:
            return "Not a number of type " + ("INT" if high <= MAX_INT32 else "LONG")
        if not -(MAX_INT64 + 1) <= number <= (MAX_INT32 if high <= MAX_INT32 else MAX_INT64):
            return "Not a number of type " + ("INT" if high <= MAX_INT32 else "LONG")
        if number < low:
            return f"Value must be at least {low}"
        return None if number <= high else f"Value must be no more than {high}"

    return problem


def _ratio(value: str) -> str | None:
    try:
        number = float(value)
    except ValueError:
        return "Not a number of type DOUBLE"
    return None if math.isfinite(number) and 0 <= number <= 1 else "Value must be between 0 and 1"


def _boolean(value: str) -> str | None:
    return None if value.strip().lower() in ("true", "false") else "Expected value to be either true or false"


def _disabled(value: str) -> str | None:
    problem = _boolean(value)
    return (
        "Tiered Storage functionality is disabled in the broker."
        if problem is None and "t" in value.lower()
        else problem
    )


def _one_of(*allowed: str) -> Callable[[str], str | None]:
    text = ", ".join(allowed)
    return lambda value: None if value in allowed else f"String must be one of: {text}"


def _list_of(*allowed: str) -> Callable[[str], str | None]:
    text = ", ".join(allowed)

    def problem(value: str) -> str | None:
        return None if all(item in allowed for item in list_items(value)) else f"String must be one of: {text}"

    return problem


def _replica_list(value: str) -> str | None:
    items = [item.strip() for item in value.split(",") if item.strip()]
    if items in ([], ["*"]):
        return None
    parts = [item.split(":") for item in items]
    if all(len(part) == 2 and part[0].isdigit() and part[1].isdigit() for part in parts):
        return None
    return "must be the literal '*' or a list of replicas in the form [partitionId]:[brokerId],..."


_INT = _integer(0, MAX_INT32)
_LONG = _integer(0, MAX_INT64)
_CODECS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")


def _rows() -> list[TopicConfig]:
    row = TopicConfig
    return [
        row("cleanup.policy", "LIST", "delete", "log.cleanup.policy", True, _list_of("compact", "delete")),
        row("compression.gzip.level", "INT", "-1", "compression.gzip.level", False, _gzip_level),
        row("compression.lz4.level", "INT", "9", "compression.lz4.level", False, _integer(1, 17)),
        row("compression.type", "STRING", "producer", "compression.type", False, _one_of(*_CODECS)),
        row("compression.zstd.level", "INT", "3", "compression.zstd.level", False, _integer(-131072, 22)),
        row("delete.retention.ms", "LONG", str(DAY_MS), "log.cleaner.delete.retention.ms", True, _LONG),
        row("file.delete.delay.ms", "LONG", "60000", "log.segment.delete.delay.ms", False, _LONG),
        row("flush.messages", "LONG", str(MAX_INT64), "log.flush.interval.messages", False, _integer(1, MAX_INT64)),
        row("flush.ms", "LONG", str(MAX_INT64), "log.flush.interval.ms", False, _LONG),
        row("follower.replication.throttled.replicas", "LIST", "", None, False, _replica_list),
        row("index.interval.bytes", "INT", "4096", "log.index.interval.bytes", True, _INT),
        row("leader.replication.throttled.replicas", "LIST", "", None, False, _replica_list),
        row("local.retention.bytes", "LONG", "-2", "log.local.retention.bytes", False, _integer(-2, MAX_INT64)),
        row("local.retention.ms", "LONG", "-2", "log.local.retention.ms", False, _integer(-2, MAX_INT64)),
        row(
            "max.compaction.lag.ms",
            "LONG",
            str(MAX_INT64),
            "log.cleaner.max.compaction.lag.ms",
            True,
            _integer(1, MAX_INT64),
        ),
        row("max.message.bytes", "INT", "1048588", "message.max.bytes", True, _INT),
        row(
            "message.timestamp.after.max.ms",
            "LONG",
            str(HOUR_MS),
            "log.message.timestamp.after.max.ms",
            True,
            _LONG,
        ),
        row(
            "message.timestamp.before.max.ms",
            "LONG",
            str(MAX_INT64),
            "log.message.timestamp.before.max.ms",
            True,
            _LONG,
        ),
        row(
            "message.timestamp.type",
            "STRING",
            "CreateTime",
            "log.message.timestamp.type",
            True,
            _one_of("CreateTime", "LogAppendTime"),
        ),
        row("min.cleanable.dirty.ratio", "DOUBLE", "0.5", "log.cleaner.min.cleanable.ratio", True, _ratio),
        row("min.compaction.lag.ms", "LONG", "0", "log.cleaner.min.compaction.lag.ms", True, _LONG),
        row("min.insync.replicas", "INT", "1", "min.insync.replicas", False, _integer(1, MAX_INT32)),
        row("preallocate", "BOOLEAN", "false", "log.preallocate", False, _boolean),
        row("remote.log.copy.disable", "BOOLEAN", "false", None, False, _boolean),
        row("remote.log.delete.on.disable", "BOOLEAN", "false", None, False, _boolean),
        row("remote.storage.enable", "BOOLEAN", "false", None, False, _disabled),
        row("retention.bytes", "LONG", "-1", "log.retention.bytes", True, _integer(-(MAX_INT64 + 1), MAX_INT64)),
        row("retention.ms", "LONG", str(7 * DAY_MS), "log.retention.ms", True, _integer(-1, MAX_INT64)),
        row("segment.bytes", "INT", str(1 << 30), "log.segment.bytes", True, _integer(1 << 20, MAX_INT32)),
        row("segment.index.bytes", "INT", "10485760", "log.index.size.max.bytes", False, _integer(4, MAX_INT32)),
        row("segment.jitter.ms", "LONG", "0", "log.roll.jitter.ms", False, _LONG),
        row("segment.ms", "LONG", str(7 * DAY_MS), "log.roll.ms", True, _integer(1, MAX_INT64)),
        row(
            "unclean.leader.election.enable",
            "BOOLEAN",
            "false",
            "unclean.leader.election.enable",
            False,
            _boolean,
        ),
    ]


def _gzip_level(value: str) -> str | None:
    problem = _integer(-1, 9)(value)
    return problem if problem is not None or int(value) != 0 else "Value must be between 1 and 9 or equal to -1"


TOPIC_CONFIGS: dict[str, TopicConfig] = {config.name: config for config in _rows()}


class Policy(NamedTuple):
    """The effective configs of one topic: its own, else the dynamic broker configs, else the settings."""

    segment_bytes: int
    segment_ms: int
    index_interval_bytes: int
    max_message_bytes: int
    log_append_time: bool
    timestamp_before_max_ms: int
    timestamp_after_max_ms: int
    delete: bool
    compact: bool
    retention_ms: int
    retention_bytes: int
    delete_retention_ms: int
    min_compaction_lag_ms: int
    max_compaction_lag_ms: int
    min_cleanable_dirty_ratio: float

    @property
    def roll_ms(self) -> int:
        """The time that one segment may span. Compaction skips the active segment, so its max lag counts too."""
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.compact else self.segment_ms

    @classmethod
    def of(cls, configs: Mapping[str, str], broker_configs: Mapping[str, str], settings: LogSettings) -> Policy:
        def value(name: str, default: object) -> str:
            found = configs.get(name)
            if found is None:
                synonym = TOPIC_CONFIGS[name].synonym
                found = broker_configs.get(synonym) if synonym is not None else None
            return str(default) if found is None else found

        cleanup = {item.strip() for item in value("cleanup.policy", settings.cleanup_policy).split(",")}
        return cls(
            segment_bytes=int(value("segment.bytes", settings.segment_bytes)),
            segment_ms=int(value("segment.ms", settings.segment_ms)),
            index_interval_bytes=int(value("index.interval.bytes", settings.index_interval_bytes)),
            max_message_bytes=int(value("max.message.bytes", settings.message_max_bytes)),
            log_append_time=value("message.timestamp.type", settings.message_timestamp_type) == "LogAppendTime",
            timestamp_before_max_ms=int(
                value("message.timestamp.before.max.ms", settings.message_timestamp_before_max_ms)
            ),
            timestamp_after_max_ms=int(
                value("message.timestamp.after.max.ms", settings.message_timestamp_after_max_ms)
            ),
            delete="delete" in cleanup,
            compact="compact" in cleanup,
            retention_ms=int(value("retention.ms", settings.retention_ms)),
            retention_bytes=int(value("retention.bytes", settings.retention_bytes)),
            delete_retention_ms=int(value("delete.retention.ms", settings.delete_retention_ms)),
            min_compaction_lag_ms=int(value("min.compaction.lag.ms", settings.min_compaction_lag_ms)),
            max_compaction_lag_ms=int(value("max.compaction.lag.ms", settings.max_compaction_lag_ms)),
            min_cleanable_dirty_ratio=float(value("min.cleanable.dirty.ratio", settings.min_cleanable_dirty_ratio)),
        )
