"""The options of format("kgctl"), which have the names of Spark's Kafka source. An unknown option is refused with a suggestion."""

from __future__ import annotations

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
from kgctl.contexts.connecting import resolved
from kgctl.contexts.handover import portable
from kgctl.contexts.names import BadContext
from kgctl.contexts.target import Given, choose
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.schemas.sources import HEADERS, RAW_NAMES
from kgctl.pipelines.source.option_names import (
    BOOTSTRAP,
    COLUMNS,
    COMMAND_CONFIG,
    COMPRESSION,
    CONTEXT,
    ENDS,
    FETCH,
    ISOLATION,
    SELECTIONS,
    STARTS,
    BadOption,
    is_security,
    known_to_read,
    known_to_write,
)

SPARK_CLIENT_ID = "kgctl-spark"
SPARK_FETCH = FetchOptions(max_wait_ms=500, max_bytes=16 << 20, max_partition_bytes=8 << 20)

_INT32_MAX, _INT64_MAX = 2**31 - 1, 2**63 - 1

# As in Spark's source.
MAX_TRIGGER_DELAY_S = 900.0
_DURATION = re.compile(r"(\d+)\s*([a-z]*)")
_UNIT_MS = {"us": 0.001, "": 1, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


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
    """`starting` None means the earliest offset for a batch, the latest for a stream. `columns`: what each record becomes.

    `fetch_retries` limits how often a failed look-up of offsets is repeated; None repeats it for a minute once the cluster
    has answered. `poll_timeout_s`: seconds without records until a task fails.
    """

    connection: ConnectionSettings
    selection: Selection
    starting: Where | None = None
    ending: Where = LATEST
    ending_given: bool = False
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_s: float = MAX_TRIGGER_DELAY_S
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    columns: tuple[str, ...] = RAW_NAMES
    fail_on_data_loss: bool = True
    fetch: FetchOptions = SPARK_FETCH
    fetch_retries: int | None = None
    fetch_pause_s: float = 0.5
    poll_timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class WriteOptions:
    connection: ConnectionSettings
    topic: str | None
    codec: Codec = Codec.NONE


def read_options(given: Mapping[str, str]) -> ReadOptions:
    """Raises BadOption or BadAddress, which say what to write instead."""
    options = known_to_read(given)
    most, least = _count(options, "maxOffsetsPerTrigger"), _count(options, "minOffsetsPerTrigger")
    if most is not None and least is not None and least > most:
        raise BadOption(f"minOffsetsPerTrigger, {least}, is larger than maxOffsetsPerTrigger, {most}")
    poll_ms = _count(options, "kafkaConsumer.pollTimeoutMs")
    pause_ms = _count(options, "fetchOffset.retryIntervalMs", least=0)
    return ReadOptions(
        connection=_connection(options),
        selection=_selection(options),
        starting=_where(options, STARTS),
        ending=_ending(options),
        ending_given=any(name.lower() in options for name in ENDS),
        max_offsets_per_trigger=most,
        min_offsets_per_trigger=least,
        max_trigger_delay_s=_duration_s(options, "maxTriggerDelay", MAX_TRIGGER_DELAY_S),
        min_partitions=_count(options, "minPartitions"),
        max_records_per_partition=_count(options, "maxRecordsPerPartition"),
        columns=_columns(options),
        fail_on_data_loss=_flag(options, "failOnDataLoss", default=True),
        fetch=_fetch(options),
        fetch_retries=_count(options, "fetchOffset.numRetries", least=0),
        fetch_pause_s=(500 if pause_ms is None else pause_ms) / 1000,
        poll_timeout_s=None if poll_ms is None else poll_ms / 1000,
    )


def write_options(given: Mapping[str, str]) -> WriteOptions:
    options = known_to_write(given)
    name = options.get(COMPRESSION, "none")
    if name.upper() not in Codec.__members__:
        raise BadOption(
            f"{COMPRESSION} must be one of {', '.join(codec.name.lower() for codec in Codec)}, not {name!r}"
        )
    return WriteOptions(_connection(options), options.get("topic"), Codec[name.upper()])


def _connection(options: Mapping[str, str]) -> ConnectionSettings:
    """A context or a client.properties, by its name, keeps secrets out of Spark's plan; `kafka.` options may add to it."""
    given = {name.removeprefix("kafka."): text for name, text in options.items() if _is_connection(name)}
    choice = Given(
        None, options.get(CONTEXT), options.get(COMMAND_CONFIG.lower()), (BOOTSTRAP, CONTEXT, COMMAND_CONFIG)
    )
    try:
        chosen: dict[str, str | Secret] = resolved(choose(choice)) if choice.names_a_cluster else {}
        properties = {**chosen, **given}
        if not properties.get("bootstrap.servers"):
            raise BadOption(f"the option {BOOTSTRAP!r} is missing: HOST:PORT[,HOST:PORT...]")
        return portable(properties, SPARK_CLIENT_ID)
    except BadContext as error:
        raise BadOption(str(error)) from None


def _is_connection(name: str) -> bool:
    return name in (BOOTSTRAP, "kafka.client.id") or is_security(name)


def _selection(options: Mapping[str, str]) -> Selection:
    chosen = [name for name in SELECTIONS if name.lower() in options]
    if len(chosen) != 1:
        found = " and ".join(chosen) if chosen else "none of them"
        raise BadOption(f"give exactly one of the options subscribe, subscribePattern and assign, not {found}")
    text = options[chosen[0].lower()]
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
    ending = _where(options, ENDS)
    if ending == EARLIEST or (isinstance(ending, Mapping) and EARLIEST in ending.values()):
        raise BadOption("endingOffsets cannot be the earliest offset; use latest or an offset")
    return LATEST if ending is None else ending


def _where(options: Mapping[str, str], names: tuple[str, str, str]) -> Where | None:
    """As in Spark, an option for each partition overrides one for all partitions."""
    by_timestamp, by_offset, timestamp = names
    strategy = options.get("startingoffsetsbytimestampstrategy", "error").lower()
    if strategy not in ("latest", "error"):
        raise BadOption(f"startingOffsetsByTimestampStrategy must be latest or error, not {strategy!r}")
    strict = strategy == "error" and names is STARTS
    if timestamp.lower() in options:
        return AtTimestamp(all_ms=_whole(options[timestamp.lower()], timestamp, least=0), strict=strict)
    if by_timestamp.lower() in options:
        each = _per_partition(options[by_timestamp.lower()], by_timestamp, least=0)
        return AtTimestamp(each_ms=each, strict=strict)
    text = options.get(by_offset.lower())
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
    level = options.get(ISOLATION, "read_uncommitted").lower()
    if level not in ("read_uncommitted", "read_committed"):
        raise BadOption(f"{ISOLATION} must be read_uncommitted or read_committed, not {level!r}")
    settings = {field: getattr(SPARK_FETCH, field) for field in FETCH.values()}
    for option, field_name in FETCH.items():
        if option in options:
            # A reader that may fetch no bytes would never get a record.
            least = 1 if field_name in ("max_bytes", "max_partition_bytes") else 0
            settings[field_name] = min(_whole(options[option], option, least), _INT32_MAX)
    return FetchOptions(**settings, committed_only=level == "read_committed")


def _count(options: Mapping[str, str], name: str, least: int = 1) -> int | None:
    text = options.get(name.lower())
    return None if text is None else _whole(text, name, least)


def _columns(options: Mapping[str, str]) -> tuple[str, ...]:
    with_headers = _flag(options, "includeHeaders", default=False)
    known = (*RAW_NAMES, HEADERS)
    text = options.get(COLUMNS)
    if text is None:
        return known if with_headers else RAW_NAMES
    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        if name not in known:
            raise BadOption(f"{COLUMNS}: {name!r} is not one of {', '.join(known)}")
    if len(set(names)) < len(names):
        raise BadOption(f"{COLUMNS} names a column twice: {text}")
    if with_headers and HEADERS not in names:
        raise BadOption(f"includeHeaders asks for headers, which {COLUMNS} leaves out: {text}")
    return names


def _duration_s(options: Mapping[str, str], name: str, default: float) -> float:
    """A time as Spark writes it, 15m or 500ms; a number without a unit is in milliseconds."""
    text = options.get(name.lower())
    if text is None:
        return default
    found = _DURATION.fullmatch(text.lower())
    if found is None or found[2] not in _UNIT_MS:
        raise BadOption(f"{name} must be a time such as 15m, 30s or 500ms, not {text!r}")
    return int(found[1]) * _UNIT_MS[found[2]] / 1000


def _whole(text: str, name: str, least: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least:
        raise BadOption(f"{name} must be a whole number, {least} or more, not {text!r}")
    if value > _INT64_MAX:
        raise BadOption(f"{name} must be {_INT64_MAX} or less, not {text!r}")
    return value


def _flag(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = options.get(name.lower(), str(default)).lower()
    if text not in ("true", "false"):
        raise BadOption(f"{name} must be true or false, not {text!r}")
    return text == "true"


def _is_offset(value: object, least: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= _INT64_MAX
