"""The table of broker options: Kafka's names, types and defaults, and what each option does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, Literal

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1

Kind = Literal["int", "long", "double", "boolean", "string", "list"]
Value = int | float | bool | str | tuple[str, ...] | None


class ConfigError(ValueError):
    """An option with an invalid name or value. The text is one line for the user."""


@dataclass(frozen=True, slots=True)
class Option:
    """One row of the table. `least` and `most` are inclusive bounds; `choices` lists the allowed values."""

    name: str
    kind: Kind
    default: Value
    doc: str
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()

    @property
    def field_name(self) -> str:
        return self.name.replace(".", "_")

    def parse(self, text: str) -> Value:
        """Parse and check a value. Raises ConfigError."""
        text = text.strip()
        value = self._parse_kind(text)
        if isinstance(value, int | float) and not isinstance(value, bool):
            low = self.least if self.least is not None else -float("inf")
            high = self.most if self.most is not None else float("inf")
            if not low <= value <= high:
                raise ConfigError(f"{self.name}={text}: must be {self._range()}")
        wrong = [word for word in _words(value) if self.choices and word not in self.choices]
        if wrong:
            raise ConfigError(f"{self.name}={text}: {wrong[0]!r} is not one of {', '.join(self.choices)}")
        return value

    def _parse_kind(self, text: str) -> Value:
        match self.kind:
            case "int" | "long":
                sign, digits = text[:1] in ("+", "-"), text.lstrip("+-")
                if not (digits.isascii() and digits.isdigit() and len(text) - len(digits) == sign):
                    raise ConfigError(f"{self.name}={text}: not a whole number")
                return int(text)
            case "double":
                try:
                    return float(text)
                except ValueError:
                    raise ConfigError(f"{self.name}={text}: not a number") from None
            case "boolean":
                if text.lower() not in ("true", "false"):
                    raise ConfigError(f"{self.name}={text}: must be true or false")
                return text.lower() == "true"
            case "list":
                return tuple(word.strip() for word in text.split(",")) if text else ()
            case "string":
                return text

    def _range(self) -> str:
        if self.least is not None and self.most is not None and self.most < INT_MAX:
            return f"from {self.least} to {self.most}"
        limit = self.most if self.most is not None else LONG_MAX
        return f"at least {self.least} and at most {limit}" if self.least is not None else f"at most {limit}"


def _words(value: Value) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return value if isinstance(value, tuple) else ()


def spell(value: Value) -> str | None:
    """The value as Kafka writes it in DescribeConfigs; None if it is absent."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _option(name: str, kind: Kind, default: Value, doc: str, **bounds: Any) -> Any:
    if kind in ("int", "long"):
        top = INT_MAX if kind == "int" else LONG_MAX
        bounds = {"least": -top - 1, "most": top} | bounds
    return field(default=default, metadata={"option": Option(name, kind, default, doc, **bounds)})


def _int(name: str, default: int | None, doc: str, **bounds: Any) -> Any:
    return _option(name, "int", default, doc, **bounds)


def _long(name: str, default: int | None, doc: str, **bounds: Any) -> Any:
    return _option(name, "long", default, doc, **bounds)


def _double(name: str, default: float, doc: str, **bounds: Any) -> Any:
    return _option(name, "double", default, doc, **bounds)


def _bool(name: str, default: bool, doc: str) -> Any:
    return _option(name, "boolean", default, doc)


def _text(name: str, default: str | None, doc: str, **bounds: Any) -> Any:
    return _option(name, "string", default, doc, **bounds)


def _list(name: str, default: tuple[str, ...], doc: str, **bounds: Any) -> Any:
    return _option(name, "list", default, doc, **bounds)


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Options:
    """One field per option that the broker uses. The name of a field is Kafka's, with underscores for dots."""

    # Identity and listeners.
    node_id: int = _int("node.id", 1, "The id of this broker, the only one of its cluster.", least=0)
    broker_id: int = _int("broker.id", -1, "Older name of node.id; used if node.id is not set.")
    broker_rack: str | None = _text("broker.rack", None, "The rack reported in Metadata.")
    listeners: str = _text(
        "listeners", "PLAINTEXT://127.0.0.1:9092", "The addresses to listen on, each with the name of its listener."
    )
    advertised_listeners: str | None = _text(
        "advertised.listeners", None, "The addresses given to clients; by default those to listen on."
    )
    listener_security_protocol_map: tuple[str, ...] = _list(
        "listener.security.protocol.map",
        ("SASL_SSL:SASL_SSL", "PLAINTEXT:PLAINTEXT", "SSL:SSL", "SASL_PLAINTEXT:SASL_PLAINTEXT"),
        "The security protocol of each listener name: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.",
    )
    controller_listener_names: tuple[str, ...] = _list(
        "controller.listener.names", (), "Listeners to ignore; a single node has no controller."
    )

    # Connections and requests.
    socket_request_max_bytes: int = _int(
        "socket.request.max.bytes",
        104857600,
        "The largest request in bytes; a larger one closes the connection.",
        least=1,
    )
    socket_listen_backlog_size: int = _int(
        "socket.listen.backlog.size", 50, "The length of the queue of connections to accept.", least=1
    )
    connections_max_idle_ms: int = _long(
        "connections.max.idle.ms", 600000, "Close a connection after this time without requests; no Fetch waits longer."
    )
    max_connections: int = _int("max.connections", INT_MAX, "The maximum number of connections.", least=0)
    max_connections_per_ip: int = _int(
        "max.connections.per.ip", INT_MAX, "The maximum number of connections from one IP address.", least=0
    )
    fetch_max_bytes: int = _int(
        "fetch.max.bytes", 57671680, "The maximum bytes of records in a Fetch response.", least=1024
    )
    max_request_partition_size_limit: int = _int(
        "max.request.partition.size.limit",
        2000,
        "The maximum number of partitions in a DescribeTopicPartitions response.",
        least=1,
    )

    # Topics.
    auto_create_topics_enable: bool = _bool(
        "auto.create.topics.enable", True, "Whether a Metadata request creates missing topics."
    )
    delete_topic_enable: bool = _bool("delete.topic.enable", True, "Whether topics can be deleted.")
    num_partitions: int = _int(
        "num.partitions", 1, "The number of partitions of a topic that is created without one.", least=1
    )
    default_replication_factor: int = _int(
        "default.replication.factor",
        1,
        "The replication factor of a topic that is created without one; a single node supports only 1.",
    )

    # Groups and their offsets.
    group_initial_rebalance_delay_ms: int = _int(
        "group.initial.rebalance.delay.ms",
        0,
        "How long the first rebalance of an empty group waits for more members.",
        least=0,
    )
    group_min_session_timeout_ms: int = _int(
        "group.min.session.timeout.ms", 6000, "The minimum session timeout of a member."
    )
    group_max_session_timeout_ms: int = _int(
        "group.max.session.timeout.ms", 1800000, "The maximum session timeout of a member."
    )
    group_max_size: int = _int("group.max.size", INT_MAX, "The maximum number of members of a group.", least=1)
    offset_metadata_max_bytes: int = _int(
        "offset.metadata.max.bytes", 4096, "The maximum size of the metadata of a committed offset."
    )
    offsets_retention_minutes: int = _int(
        "offsets.retention.minutes", 10080, "How long the offsets of an empty group are retained.", least=1
    )
    offsets_retention_check_interval_ms: int = _long(
        "offsets.retention.check.interval.ms",
        600000,
        "How often to check for expired offsets.",
        least=1,
    )
    offsets_topic_num_partitions: int = _int(
        "offsets.topic.num.partitions",
        50,
        "The number of partitions of __consumer_offsets; fixed once the topic exists.",
        least=1,
    )
    offsets_topic_segment_bytes: int = _int(
        "offsets.topic.segment.bytes", 104857600, "The default segment.bytes of __consumer_offsets.", least=1
    )

    # Storage: defaults of topic configs, and settings of the broker.
    message_max_bytes: int = _int("message.max.bytes", 1048588, "The largest record batch in bytes.", least=0)
    log_message_timestamp_type: str = _text(
        "log.message.timestamp.type",
        "CreateTime",
        "Whether a record keeps the timestamp of the producer or gets that of the broker.",
        choices=("CreateTime", "LogAppendTime"),
    )
    log_message_timestamp_before_max_ms: int = _long(
        "log.message.timestamp.before.max.ms",
        LONG_MAX,
        "How far in the past the timestamp of a producer may lie.",
        least=0,
    )
    log_message_timestamp_after_max_ms: int = _long(
        "log.message.timestamp.after.max.ms",
        3600000,
        "How far in the future the timestamp of a producer may lie.",
        least=0,
    )
    log_segment_bytes: int = _int(
        "log.segment.bytes", 1073741824, "The size at which a new segment starts.", least=1048576
    )
    log_roll_ms: int | None = _long("log.roll.ms", None, "The age at which a new segment starts.")
    log_roll_hours: int = _int("log.roll.hours", 168, "The same in hours; used if log.roll.ms is not set.", least=1)
    log_retention_ms: int | None = _long(
        "log.retention.ms", None, "How long records are retained; -1 retains them forever."
    )
    log_retention_minutes: int | None = _int(
        "log.retention.minutes", None, "The same in minutes; used if log.retention.ms is not set."
    )
    log_retention_hours: int = _int(
        "log.retention.hours", 168, "The same in hours; used if neither ms nor minutes is set."
    )
    log_retention_bytes: int = _long(
        "log.retention.bytes", -1, "How many bytes of a partition are retained; -1 sets no limit."
    )
    log_retention_check_interval_ms: int = _long(
        "log.retention.check.interval.ms", 300000, "How often to check for segments to delete.", least=1
    )
    log_index_interval_bytes: int = _int(
        "log.index.interval.bytes", 4096, "The bytes of records between two entries of the sparse index.", least=0
    )
    log_cleanup_policy: tuple[str, ...] = _list(
        "log.cleanup.policy",
        ("delete",),
        "What to do with old records: delete, compact, or both.",
        choices=("compact", "delete"),
    )
    log_cleaner_backoff_ms: int = _long(
        "log.cleaner.backoff.ms", 15000, "How often to check for logs to compact.", least=0
    )
    log_cleaner_delete_retention_ms: int = _long(
        "log.cleaner.delete.retention.ms", 86400000, "How long compaction retains a tombstone.", least=0
    )
    log_cleaner_min_cleanable_ratio: float = _double(
        "log.cleaner.min.cleanable.ratio",
        0.5,
        "The minimum share of dirty bytes for a log to be compacted.",
        least=0,
        most=1,
    )
    log_cleaner_min_compaction_lag_ms: int = _long(
        "log.cleaner.min.compaction.lag.ms", 0, "The minimum time before a record can be compacted.", least=0
    )
    log_cleaner_max_compaction_lag_ms: int = _long(
        "log.cleaner.max.compaction.lag.ms", LONG_MAX, "The maximum time before a record must be compacted.", least=1
    )
    producer_id_expiration_ms: int = _int(
        "producer.id.expiration.ms",
        86400000,
        "How long the sequence numbers of an idle producer are retained.",
        least=1,
    )
    producer_id_expiration_check_interval_ms: int = _int(
        "producer.id.expiration.check.interval.ms", 600000, "How often to check for idle producers.", least=1
    )


def _option_of(entry: Field[Any]) -> Option:
    option: Option = entry.metadata["option"]
    return option


OPTIONS: Mapping[str, Option] = {option.name: option for option in map(_option_of, fields(Options))}
