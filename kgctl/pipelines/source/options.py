"""The options of format("kgctl"), which have the names of Spark's Kafka source. An unknown option is refused with a suggestion."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from broker.protocol.compression import Codec
from broker.security.secret import Secret
from kgctl.client.admin.offsets import EARLIEST, LATEST
from kgctl.client.consumer.fetching.options import FetchOptions
from kgctl.client.net.connector import ConnectionSettings
from kgctl.client.net.errors import KgctlError
from kgctl.contexts.connecting import resolved
from kgctl.contexts.handover import portable
from kgctl.contexts.names import BadContext
from kgctl.contexts.target import Given, choose
from kgctl.model.topic_partition import TopicPartition

SPARK_CLIENT_ID = "kgctl-spark"
SPARK_FETCH = FetchOptions(max_wait_ms=500, max_bytes=16 << 20, max_partition_bytes=4 << 20)

_SELECTIONS = ("subscribe", "subscribePattern", "assign")
_STARTS = ("startingOffsetsByTimestamp", "startingOffsets", "startingTimestamp")
_ENDS = ("endingOffsetsByTimestamp", "endingOffsets", "endingTimestamp")
_READ_OPTIONS = (
    *_SELECTIONS,
    *_STARTS,
    *_ENDS,
    "startingOffsetsByTimestampStrategy",
    "maxOffsetsPerTrigger",
    "minPartitions",
    "includeHeaders",
    "failOnDataLoss",
)
_FETCH_OPTIONS = {
    "kafka.fetch.max.wait.ms": "max_wait_ms",
    "kafka.fetch.min.bytes": "min_bytes",
    "kafka.fetch.max.bytes": "max_bytes",
    "kafka.max.partition.fetch.bytes": "max_partition_bytes",
}
_ISOLATION = "kafka.isolation.level"
_BOOTSTRAP, _CONTEXT, _COMMAND_CONFIG = "kafka.bootstrap.servers", "context", "commandConfig"
_KAFKA_OPTIONS = (_BOOTSTRAP, "kafka.client.id", _ISOLATION, *_FETCH_OPTIONS)
# Options of Spark's connector and of Kafka's Java clients that are accepted but ignored, to keep jobs portable.
_IGNORED = ("kafkaConsumer.pollTimeoutMs", "fetchOffset.numRetries", "fetchOffset.retryIntervalMs", "groupIdPrefix")
_IGNORED_KAFKA = (
    "acks",
    "auto.offset.reset",
    "batch.size",
    "buffer.memory",
    "check.crcs",
    "compression.type",
    "connections.max.idle.ms",
    "delivery.timeout.ms",
    "enable.auto.commit",
    "enable.idempotence",
    "group.id",
    "linger.ms",
    "max.block.ms",
    "max.in.flight.requests.per.connection",
    "max.poll.interval.ms",
    "max.poll.records",
    "max.request.size",
    "metadata.max.age.ms",
    "receive.buffer.bytes",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "request.timeout.ms",
    "retries",
    "retry.backoff.ms",
    "send.buffer.bytes",
    "session.timeout.ms",
)
# Spark passes the options of a query on to its sink.
_OF_SPARK = ("checkpointLocation", "queryName")


class BadOption(KgctlError):
    name = "BAD_OPTION"


@dataclass(frozen=True, slots=True)
class AtTimestamp:
    """Offsets by time, ms since 1970: one for all partitions or one for each. If no record is that new, the log end."""

    all_ms: int | None = None
    each_ms: Mapping[TopicPartition, int] = field(default_factory=dict)
    strict: bool = False


# EARLIEST or LATEST for all partitions; an offset, EARLIEST or LATEST per partition; or times.
Where: TypeAlias = "int | Mapping[TopicPartition, int] | AtTimestamp"


@dataclass(frozen=True, slots=True)
class Selection:
    """The partitions to read: of these topics, of topics whose whole name matches the pattern, or exactly these."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """`starting` None means the earliest offset for a batch, the latest for a stream."""

    connection: ConnectionSettings
    selection: Selection
    starting: Where | None = None
    ending: Where = LATEST
    ending_given: bool = False
    max_offsets_per_trigger: int | None = None
    min_partitions: int | None = None
    include_headers: bool = False
    fail_on_data_loss: bool = True
    fetch: FetchOptions = SPARK_FETCH


@dataclass(frozen=True, slots=True)
class WriteOptions:
    connection: ConnectionSettings
    topic: str | None
    codec: Codec = Codec.NONE


def read_options(given: Mapping[str, str]) -> ReadOptions:
    """Raises BadOption or BadAddress, which say what to write instead."""
    options = _known(given, (*_READ_OPTIONS, *_IGNORED))
    return ReadOptions(
        connection=_connection(options),
        selection=_selection(options),
        starting=_where(options, _STARTS),
        ending=_ending(options),
        ending_given=any(_lower(name) in options for name in _ENDS),
        max_offsets_per_trigger=_count(options, "maxOffsetsPerTrigger"),
        min_partitions=_count(options, "minPartitions"),
        include_headers=_flag(options, "includeHeaders", default=False),
        fail_on_data_loss=_flag(options, "failOnDataLoss", default=True),
        fetch=_fetch(options),
    )


def write_options(given: Mapping[str, str]) -> WriteOptions:
    options = _known(given, ("topic", "includeHeaders", *_IGNORED))
    name = options.get("kafka.compression.type", "none")
    if name.upper() not in Codec.__members__:
        raise BadOption(
            f"kafka.compression.type must be one of {', '.join(codec.name.lower() for codec in Codec)}, not {name!r}"
        )
    return WriteOptions(_connection(options), options.get("topic"), Codec[name.upper()])


def _known(given: Mapping[str, str], own: tuple[str, ...]) -> dict[str, str]:
    """The options by lower-case name, since Spark ignores the case of names."""
    names = [
        *own,
        _CONTEXT,
        _COMMAND_CONFIG,
        *_KAFKA_OPTIONS,
        *_OF_SPARK,
        *(f"kafka.{name}" for name in _IGNORED_KAFKA),
    ]
    known = {_lower(name): name for name in names}
    for name in given:
        if _lower(name) not in known and not _is_security(_lower(name)):
            nearest = difflib.get_close_matches(_lower(name), known, 1, 0.5)
            hint = f"; did you mean {known[nearest[0]]!r}?" if nearest else ""
            raise BadOption(f'format("kgctl") has no option {name!r}{hint}')
    return {_lower(name): value.strip() for name, value in given.items()}


def _connection(options: Mapping[str, str]) -> ConnectionSettings:
    """A context or a client.properties, by its name, keeps secrets out of Spark's plan; `kafka.` options may add to it."""
    given = {name.removeprefix("kafka."): text for name, text in options.items() if _is_connection(name)}
    choice = Given(
        None, options.get(_CONTEXT), options.get(_lower(_COMMAND_CONFIG)), (_BOOTSTRAP, _CONTEXT, _COMMAND_CONFIG)
    )
    try:
        chosen: dict[str, str | Secret] = resolved(choose(choice)) if choice.names_a_cluster else {}
        properties = {**chosen, **given}
        if not properties.get("bootstrap.servers"):
            raise BadOption(f"the option {_BOOTSTRAP!r} is missing: HOST:PORT[,HOST:PORT...]")
        return portable(properties, SPARK_CLIENT_ID)
    except BadContext as error:
        raise BadOption(str(error)) from None


def _is_connection(name: str) -> bool:
    return name in (_BOOTSTRAP, "kafka.client.id") or _is_security(name)


def _is_security(name: str) -> bool:
    return name.startswith(("kafka.security.", "kafka.ssl.", "kafka.sasl."))


def _selection(options: Mapping[str, str]) -> Selection:
    chosen = [name for name in _SELECTIONS if _lower(name) in options]
    if len(chosen) != 1:
        found = " and ".join(chosen) if chosen else "none of them"
        raise BadOption(f"give exactly one of the options subscribe, subscribePattern and assign, not {found}")
    text = options[_lower(chosen[0])]
    if chosen[0] == "subscribe":
        topics = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
        if not topics:
            raise BadOption("subscribe names no topic")
        return Selection(topics=topics)
    if chosen[0] == "subscribePattern":
        try:
            re.compile(text)
        except re.error as error:
            raise BadOption(f"subscribePattern {text!r} is not a regular expression: {error}") from None
        return Selection(pattern=text)
    numbers = _json(text, "assign", '{"topic": [0, 1]}')
    chosen_partitions = set()
    for topic, some in numbers.items():
        if not isinstance(some, list) or not all(map(_is_offset, some)):
            raise BadOption(f'assign: write {{"topic": [0, 1]}}, not {text}')
        chosen_partitions |= {TopicPartition(topic, number) for number in some}
    if not chosen_partitions:
        raise BadOption("assign names no partition")
    return Selection(partitions=tuple(sorted(chosen_partitions)))


def _ending(options: Mapping[str, str]) -> Where:
    ending = _where(options, _ENDS)
    if ending == EARLIEST or (isinstance(ending, Mapping) and EARLIEST in ending.values()):
        raise BadOption("endingOffsets cannot be the earliest offset; use latest or an offset")
    return LATEST if ending is None else ending


def _where(options: Mapping[str, str], names: tuple[str, str, str]) -> Where | None:
    """As in Spark, an option for each partition overrides one for all partitions."""
    by_timestamp, by_offset, timestamp = names
    strategy = options.get("startingoffsetsbytimestampstrategy", "latest").lower()
    if strategy not in ("latest", "error"):
        raise BadOption(f"startingOffsetsByTimestampStrategy must be latest or error, not {strategy!r}")
    strict = strategy == "error" and names is _STARTS
    if _lower(timestamp) in options:
        return AtTimestamp(all_ms=_whole(options[_lower(timestamp)], timestamp, least=0), strict=strict)
    if _lower(by_timestamp) in options:
        each = _per_partition(options[_lower(by_timestamp)], by_timestamp, least=0)
        return AtTimestamp(each_ms=each, strict=strict)
    text = options.get(_lower(by_offset))
    if text is None:
        return None
    ends = {"earliest": EARLIEST, "latest": LATEST}
    if text.lower() in ends:
        return ends[text.lower()]
    return _per_partition(text, by_offset, least=EARLIEST)


def _per_partition(text: str, name: str, least: int) -> dict[TopicPartition, int]:
    form = '{"topic": {"0": 123}}'
    found = {}
    for topic, numbers in _json(text, name, form).items():
        if not isinstance(numbers, dict):
            raise BadOption(f"{name}: write {form}, not {text}")
        for number, value in numbers.items():
            if not number.isdecimal() or not _is_offset(value, least):
                raise BadOption(f"{name}: {topic}-{number}: {value!r} is not valid; write {form}")
            found[TopicPartition(topic, int(number))] = value
    return found


def _json(text: str, name: str, form: str) -> dict[str, object]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise BadOption(f"{name}: write {form}, not {text}")
    return found


def _fetch(options: Mapping[str, str]) -> FetchOptions:
    level = options.get(_ISOLATION, "read_uncommitted").lower()
    if level not in ("read_uncommitted", "read_committed"):
        raise BadOption(f"{_ISOLATION} must be read_uncommitted or read_committed, not {level!r}")
    settings = {field: getattr(SPARK_FETCH, field) for field in _FETCH_OPTIONS.values()}
    for option, field_name in _FETCH_OPTIONS.items():
        if option in options:
            settings[field_name] = min(_whole(options[option], option, least=0), 2**31 - 1)
    return FetchOptions(**settings, committed_only=level == "read_committed")


def _count(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(_lower(name))
    return None if text is None else _whole(text, name, least=1)


def _whole(text: str, name: str, least: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least:
        raise BadOption(f"{name} must be a whole number, {least} or more, not {text!r}")
    return value


def _flag(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = options.get(_lower(name), str(default)).lower()
    if text not in ("true", "false"):
        raise BadOption(f"{name} must be true or false, not {text!r}")
    return text == "true"


def _is_offset(value: object, least: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _lower(name: str) -> str:
    return name.lower()
