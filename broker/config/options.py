"""The table of broker options: Kafka's names, types and defaults, what each is for and which room reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, Literal

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1

Kind = Literal["int", "long", "double", "boolean", "string", "list"]
Value = int | float | bool | str | tuple[str, ...] | None


class ConfigError(ValueError):
    """An option that cannot be used as given; the text is one line for the user."""


@dataclass(frozen=True, slots=True)
class Option:
    """One row of the table. `least`, `most` and `choices` bound the value, both ends included."""

    name: str
    kind: Kind
    default: Value
    used_by: str
    doc: str
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()

    @property
    def field_name(self) -> str:
        return self.name.replace(".", "_")

    def parse(self, text: str) -> Value:
        """The value that `text` spells; raises ConfigError as one line."""
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
    """The value as Kafka writes it in DescribeConfigs; None for an absent one."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(value) if isinstance(value, tuple) else str(value)


def _option(name: str, kind: Kind, default: Value, used_by: str, doc: str, **bounds: Any) -> Any:
    if kind in ("int", "long"):
        top = INT_MAX if kind == "int" else LONG_MAX
        bounds = {"least": -top - 1, "most": top} | bounds
    return field(default=default, metadata={"option": Option(name, kind, default, used_by, doc, **bounds)})


def _int(name: str, default: int | None, used_by: str, doc: str, **bounds: Any) -> Any:
    return _option(name, "int", default, used_by, doc, **bounds)


def _long(name: str, default: int | None, used_by: str, doc: str, **bounds: Any) -> Any:
    return _option(name, "long", default, used_by, doc, **bounds)


def _double(name: str, default: float, used_by: str, doc: str, **bounds: Any) -> Any:
    return _option(name, "double", default, used_by, doc, **bounds)


def _bool(name: str, default: bool, used_by: str, doc: str) -> Any:
    return _option(name, "boolean", default, used_by, doc)


def _text(name: str, default: str | None, used_by: str, doc: str, **bounds: Any) -> Any:
    return _option(name, "string", default, used_by, doc, **bounds)


def _list(name: str, default: tuple[str, ...], used_by: str, doc: str, **bounds: Any) -> Any:
    return _option(name, "list", default, used_by, doc, **bounds)


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class Options:
    """One field per option that the broker uses; the field's name is Kafka's with dots as underscores."""

    # Who we are and where we listen.
    node_id: int = _int("node.id", 1, "server", "The number of this broker in the cluster of one.", least=0)
    broker_id: int = _int("broker.id", -1, "server", "Older name of node.id; used where node.id is not given.")
    broker_rack: str | None = _text("broker.rack", None, "server", "The rack that Metadata tells clients.")
    listeners: str = _text("listeners", "PLAINTEXT://127.0.0.1:9092", "server", "The address to listen on.")
    advertised_listeners: str | None = _text(
        "advertised.listeners", None, "server", "The address that clients are told; the bound one if absent."
    )
    listener_security_protocol_map: tuple[str, ...] = _list(
        "listener.security.protocol.map",
        ("SASL_SSL:SASL_SSL", "PLAINTEXT:PLAINTEXT", "SSL:SSL", "SASL_PLAINTEXT:SASL_PLAINTEXT"),
        "server",
        "Listener names and their protocols; only PLAINTEXT is served.",
    )
    controller_listener_names: tuple[str, ...] = _list(
        "controller.listener.names", (), "server", "Listeners of these names are left out: one node has no controller."
    )

    # Connections and requests.
    socket_request_max_bytes: int = _int(
        "socket.request.max.bytes",
        104857600,
        "server",
        "The largest request; a larger one closes the connection.",
        least=1,
    )
    socket_listen_backlog_size: int = _int(
        "socket.listen.backlog.size", 50, "server", "Connections that may wait to be accepted.", least=1
    )
    connections_max_idle_ms: int = _long(
        "connections.max.idle.ms", 600000, "server", "A connection without requests for so long is closed."
    )
    max_connections: int = _int("max.connections", INT_MAX, "server", "The most connections at once.", least=0)
    max_connections_per_ip: int = _int(
        "max.connections.per.ip", INT_MAX, "server", "The most connections at once from one address.", least=0
    )
    fetch_max_bytes: int = _int(
        "fetch.max.bytes", 57671680, "server", "The most bytes of records that one Fetch answers.", least=1024
    )
    max_request_partition_size_limit: int = _int(
        "max.request.partition.size.limit",
        2000,
        "server",
        "The most partitions in a DescribeTopicPartitions answer.",
        least=1,
    )

    # Topics.
    auto_create_topics_enable: bool = _bool(
        "auto.create.topics.enable", True, "server", "Whether Metadata makes a topic that is not there."
    )
    delete_topic_enable: bool = _bool("delete.topic.enable", True, "server", "Whether topics may be deleted.")
    num_partitions: int = _int(
        "num.partitions", 1, "server", "Partitions of a topic that does not say how many.", least=1
    )
    default_replication_factor: int = _int(
        "default.replication.factor", 1, "server", "Replicas of a topic that does not say how many; one node has one."
    )

    # Groups and their offsets.
    group_initial_rebalance_delay_ms: int = _int(
        "group.initial.rebalance.delay.ms",
        0,
        "coordinator",
        "How long an empty group's first join waits for more members.",
        least=0,
    )
    group_min_session_timeout_ms: int = _int(
        "group.min.session.timeout.ms", 6000, "coordinator", "The shortest session timeout a member may ask for."
    )
    group_max_session_timeout_ms: int = _int(
        "group.max.session.timeout.ms", 1800000, "coordinator", "The longest session timeout a member may ask for."
    )
    group_max_size: int = _int("group.max.size", INT_MAX, "coordinator", "The most members of a group.", least=1)
    offset_metadata_max_bytes: int = _int(
        "offset.metadata.max.bytes", 4096, "coordinator", "The longest metadata of a committed offset."
    )
    offsets_retention_minutes: int = _int(
        "offsets.retention.minutes", 10080, "coordinator", "An empty group's offsets expire after so long.", least=1
    )
    offsets_retention_check_interval_ms: int = _long(
        "offsets.retention.check.interval.ms",
        600000,
        "coordinator",
        "How often expired offsets are looked for.",
        least=1,
    )
    offsets_topic_num_partitions: int = _int(
        "offsets.topic.num.partitions", 50, "log", "Partitions of __consumer_offsets; fixed once it is made.", least=1
    )
    offsets_topic_segment_bytes: int = _int(
        "offsets.topic.segment.bytes", 104857600, "log", "Default of segment.bytes of __consumer_offsets.", least=1
    )

    # The log: defaults of the topic configs, and the broker's own.
    message_max_bytes: int = _int("message.max.bytes", 1048588, "log", "The largest record batch.", least=0)
    log_message_timestamp_type: str = _text(
        "log.message.timestamp.type",
        "CreateTime",
        "log",
        "Whether a record keeps its producer's timestamp or gets the broker's.",
        choices=("CreateTime", "LogAppendTime"),
    )
    log_message_timestamp_before_max_ms: int = _long(
        "log.message.timestamp.before.max.ms", LONG_MAX, "log", "How far back a producer's timestamp may lie.", least=0
    )
    log_message_timestamp_after_max_ms: int = _long(
        "log.message.timestamp.after.max.ms", 3600000, "log", "How far ahead a producer's timestamp may lie.", least=0
    )
    log_segment_bytes: int = _int(
        "log.segment.bytes", 1073741824, "log", "The size at which a segment is closed.", least=1048576
    )
    log_roll_ms: int | None = _long("log.roll.ms", None, "log", "The age at which a segment is closed.")
    log_roll_hours: int = _int("log.roll.hours", 168, "log", "The same in hours, where log.roll.ms is absent.", least=1)
    log_retention_ms: int | None = _long("log.retention.ms", None, "log", "How long records are kept; -1 for ever.")
    log_retention_minutes: int | None = _int(
        "log.retention.minutes", None, "log", "The same in minutes, where log.retention.ms is absent."
    )
    log_retention_hours: int = _int("log.retention.hours", 168, "log", "The same in hours, where neither is given.")
    log_retention_bytes: int = _long(
        "log.retention.bytes", -1, "log", "How many bytes of a partition are kept; -1 for all."
    )
    log_retention_check_interval_ms: int = _long(
        "log.retention.check.interval.ms", 300000, "server", "How often old segments are looked for.", least=1
    )
    log_index_interval_bytes: int = _int(
        "log.index.interval.bytes", 4096, "log", "Bytes of records per entry of the sparse index.", least=0
    )
    log_cleanup_policy: tuple[str, ...] = _list(
        "log.cleanup.policy", ("delete",), "log", "What happens to old records.", choices=("compact", "delete")
    )
    log_cleaner_backoff_ms: int = _long(
        "log.cleaner.backoff.ms", 15000, "log", "How often logs to compact are looked for.", least=0
    )
    log_cleaner_delete_retention_ms: int = _long(
        "log.cleaner.delete.retention.ms", 86400000, "log", "How long compaction keeps a tombstone.", least=0
    )
    log_cleaner_min_cleanable_ratio: float = _double(
        "log.cleaner.min.cleanable.ratio",
        0.5,
        "log",
        "The share of dirty bytes from which a log is compacted.",
        least=0,
        most=1,
    )
    log_cleaner_min_compaction_lag_ms: int = _long(
        "log.cleaner.min.compaction.lag.ms", 0, "log", "How long a record is safe from compaction.", least=0
    )
    log_cleaner_max_compaction_lag_ms: int = _long(
        "log.cleaner.max.compaction.lag.ms", LONG_MAX, "log", "How long a record may stay without compaction.", least=1
    )
    producer_id_expiration_ms: int = _int(
        "producer.id.expiration.ms",
        86400000,
        "log",
        "How long an idle producer's sequence numbers are remembered.",
        least=1,
    )
    producer_id_expiration_check_interval_ms: int = _int(
        "producer.id.expiration.check.interval.ms", 600000, "log", "How often idle producers are looked for.", least=1
    )


def _option_of(entry: Field[Any]) -> Option:
    option: Option = entry.metadata["option"]
    return option


OPTIONS: Mapping[str, Option] = {option.name: option for option in map(_option_of, fields(Options))}
