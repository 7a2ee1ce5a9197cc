"""The configs of groups, as in Kafka 4.1: their defaults are options of the broker, and so are the bounds of their values.

Those of `consumer` apply to consumer groups. The groups of Kafka Streams are refused; their configs are kept and shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from broker.config.options import OPTIONS
from broker.light_named_tuples import NamedTuple

if TYPE_CHECKING:
    from broker.config.config import BrokerConfig

_INT = re.compile(r"[+-]?0{0,99}[0-9]{1,10}")
_RESETS = ("earliest", "latest")
_BY_DURATION = "by_duration:"
_ISOLATION = ("read_committed", "read_uncommitted")


class BadGroupConfig(Exception):
    """A name or a value is not valid; the text is Kafka's."""


class GroupConfig(NamedTuple):
    """A number: `option` is its default, `low` and `high` its bounds; `least` holds for any broker. A text has no option."""

    name: str
    type: str
    default: str
    doc: str
    option: str | None = None
    low: str | None = None
    high: str | None = None
    least: int = 1


# Kafka's defaults of the options that this broker may lack.
_OPTIONS = {
    "group.streams.session.timeout.ms": 45_000,
    "group.streams.min.session.timeout.ms": 45_000,
    "group.streams.max.session.timeout.ms": 60_000,
    "group.streams.heartbeat.interval.ms": 5_000,
    "group.streams.min.heartbeat.interval.ms": 5_000,
    "group.streams.max.heartbeat.interval.ms": 15_000,
    "group.streams.num.standby.replicas": 0,
    "group.streams.max.standby.replicas": 2,
}


def _bounded(kind: str, rest: str, doc: str, least: int = 1) -> GroupConfig:
    prefix = f"group.{kind}."
    names = f"{prefix}{rest}", f"{prefix}min.{rest}", f"{prefix}max.{rest}"
    return GroupConfig(f"{kind}.{rest}", "INT", "", doc, *names, least)


def _timeouts(kind: str) -> tuple[GroupConfig, GroupConfig]:
    return (
        _bounded(kind, "session.timeout.ms", "When a silent member is removed."),
        _bounded(kind, "heartbeat.interval.ms", "How often members send heartbeats."),
    )


_STANDBYS = "group.streams.{}standby.replicas"
# In the order in which Kafka parses them.
_ALL = (
    *_timeouts("consumer"),
    *_timeouts("share"),
    _bounded("share", "record.lock.duration.ms", "How long a record is acquired.", 1_000),
    GroupConfig("share.auto.offset.reset", "STRING", "latest", "Where a share group without offsets starts."),
    GroupConfig("share.isolation.level", "STRING", "read_uncommitted", "Whether aborted records are read."),
    *_timeouts("streams"),
    GroupConfig(
        "streams.num.standby.replicas",
        "INT",
        "",
        "The number of standby tasks.",
        _STANDBYS.format("num."),
        None,
        _STANDBYS.format("max."),
        0,
    ),
)
GROUP_CONFIGS: Mapping[str, GroupConfig] = {config.name: config for config in _ALL}


def default_of(config: GroupConfig, broker: BrokerConfig) -> str:
    return config.default if config.option is None else str(_value(config.option, broker))


def check_group_configs(configs: Mapping[str, str], broker: BrokerConfig) -> None:
    """Raise BadGroupConfig unless a group may have these configs, and no others, on this broker. In Kafka's order."""
    for name in configs:
        if name not in GROUP_CONFIGS:
            raise BadGroupConfig(f"Unknown group config name: {name}")
    for config in _ALL:
        if config.name in configs:
            problem = _problem(config, configs[config.name])
            if problem is not None:
                raise BadGroupConfig(f"Invalid value {configs[config.name]} for configuration {config.name}: {problem}")
    numbers = {
        config.name: int(configs.get(config.name, default_of(config, broker)))
        for config in _ALL
        if config.option is not None
    }
    for kind in ("consumer", "share", "streams"):
        for name in (f"{kind}.heartbeat.interval.ms", f"{kind}.session.timeout.ms"):
            _check_bounds(GROUP_CONFIGS[name], numbers[name], broker)
        if kind == "share":
            _check_bounds(
                GROUP_CONFIGS["share.record.lock.duration.ms"], numbers["share.record.lock.duration.ms"], broker
            )
    _check_bounds(GROUP_CONFIGS["streams.num.standby.replicas"], numbers["streams.num.standby.replicas"], broker)
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if numbers[session] <= numbers[heartbeat]:
            raise BadGroupConfig(f"{session} must be greater than {heartbeat}")


def _problem(config: GroupConfig, value: str) -> str | None:
    """Why no group of any broker may have this value."""
    if config.type == "INT":
        text = value.strip()
        if not _INT.fullmatch(text) or not -(2**31) <= int(text) < 2**31:
            return "Not a number of type INT"
        return None if int(text) >= config.least else f"Value must be at least {config.least}"
    if config.name == "share.isolation.level":
        return None if value in _ISOLATION else f"String must be one of: {', '.join(_ISOLATION)}"
    return None if value in _RESETS or _is_by_duration(value) else _bad_reset(config.name, value)


def _is_by_duration(value: str) -> bool:
    from broker.cores.durations import parse_duration

    if not value.startswith(_BY_DURATION):
        return False
    duration = parse_duration(value.removeprefix(_BY_DURATION))
    return duration is not None and duration >= 0


def _bad_reset(name: str, value: str) -> str:
    return (
        f"Invalid value `{value}` for configuration {name}. The value must be either 'earliest', 'latest' or of the "
        "format 'by_duration:<PnDTnHnMn.nS>'."
    )


def _check_bounds(config: GroupConfig, value: int, broker: BrokerConfig) -> None:
    if config.low is not None and value < _value(config.low, broker):
        raise BadGroupConfig(f"{config.name} must be greater than or equal to {config.low}")
    if config.high is not None and value > _value(config.high, broker):
        raise BadGroupConfig(f"{config.name} must be less than or equal to {config.high}")


def _value(option: str, broker: BrokerConfig) -> int:
    if option not in OPTIONS:
        return _OPTIONS[option]
    value = broker.value_of(option)
    assert isinstance(value, int)
    return value
