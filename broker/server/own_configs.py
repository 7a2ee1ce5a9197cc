"""Configs of groups (`group_configs.py`) and of client metrics, as in Kafka. Those of client metrics are subscriptions (`telemetry.py`).

The layers of the dynamic options of the broker are kept here too (`broker_layers.py`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from broker.light_named_tuples import NamedTuple
from broker.protocol.errors import ErrorCode
from broker.server.own_config_kinds import CLIENT_METRICS, GROUP, KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.config.config import BrokerConfig
    from broker.storage import SecurityRecords

# What a client sends is compared with the pattern in the event loop.
LONGEST_PATTERN = 256
_MATCHED = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)


class OwnConfig(NamedTuple):
    """`least` and `most` are the bounds of a number."""

    name: str
    type: str
    default: str
    doc: str
    least: int = 0
    most: int = 0


class BadConfig(Exception):
    """A value or a name is not valid."""

    def __init__(self, message: str, code: ErrorCode = ErrorCode.INVALID_CONFIG) -> None:
        super().__init__(message)
        self.code = code


_METRICS_CONFIGS = (
    OwnConfig("interval.ms", "INT", "300000", "How often clients send their metrics.", 100, 3600000),
    OwnConfig("match", "LIST", "", "Which clients send them: KEY=REGULAR EXPRESSION."),
    OwnConfig("metrics", "LIST", "", "The prefixes of the names of the metrics."),
)


def own_configs(kind: int, broker: BrokerConfig) -> list[OwnConfig]:
    """What a resource of this type may have, with the defaults on this broker."""
    if kind == CLIENT_METRICS:
        return [*_METRICS_CONFIGS]
    from broker.server.group_configs import GROUP_CONFIGS, default_of

    return [
        OwnConfig(config.name, config.type, default_of(config, broker), config.doc) for config in GROUP_CONFIGS.values()
    ]


class OwnConfigs:
    """The configs that were set, by type and name of the resource. Changes are durable after the next flush.

    `changes` counts those of client metrics.
    """

    def __init__(self, records: SecurityRecords) -> None:
        self._records = records
        self.changes = 0
        self._set: dict[tuple[int, str], dict[str, str]] = {
            (kind, name): json.loads(text)
            for kind, stored in KINDS.items()
            for name, text in records.all(stored).items()
        }

    def of(self, kind: int, name: str) -> Mapping[str, str]:
        return self._set.get((kind, name), {})

    def names(self, kind: int) -> list[str]:
        """The resources that have configs."""
        return [name for found, name in self._set if found == kind]

    def alter(self, kind: int, name: str, changes: Mapping[str, str | None]) -> None:
        """None removes a config."""
        merged = {**self.of(kind, name), **changes}
        self.replace(kind, name, {key: value for key, value in merged.items() if value is not None})

    def replace(self, kind: int, name: str, configs: Mapping[str, str]) -> None:
        """Set these configs, and no others."""
        self.changes += kind == CLIENT_METRICS
        if configs:
            self._set[kind, name] = dict(configs)
            self._records.put(KINDS[kind], name, json.dumps(configs, sort_keys=True, separators=(",", ":")))
        elif self._set.pop((kind, name), None):
            self._records.delete(KINDS[kind], name)


def check_own_configs(kind: int, configs: Mapping[str, str], broker: BrokerConfig) -> None:
    """Raise BadConfig, with Kafka's message, if these are not valid configs of a resource of this type."""
    if kind == GROUP:
        from broker.server.group_configs import BadGroupConfig, check_group_configs

        try:
            check_group_configs(configs, broker)
        except BadGroupConfig as bad:
            raise BadConfig(str(bad)) from None
        return
    known = {config.name: config for config in _METRICS_CONFIGS}
    for name, value in configs.items():
        config = known.get(name)
        if config is None:
            raise BadConfig(f"Unknown client metrics configuration: {name}", ErrorCode.INVALID_REQUEST)
        if config.type == "INT":
            _check_number(config, value)
        elif name == "match":
            _check_patterns(value)


def _check_number(config: OwnConfig, value: str) -> None:
    try:
        number = int(value)
    except ValueError:
        raise BadConfig(f"Invalid value {value} for configuration {config.name}: Not a number of type INT") from None
    if not config.least <= number <= config.most:
        raise BadConfig(
            f"Invalid value {value} for {config.name}, interval must be between {config.least} and {config.most} (1 hour)",
            ErrorCode.INVALID_REQUEST,
        )


def _check_patterns(value: str) -> None:
    from broker.cores.patterns import InvalidPattern, Pattern

    for pattern in listed(value):
        key, *expressions = pattern.split("=")
        is_valid = key.strip() in _MATCHED and len(expressions) == 1 and 0 < len(expressions[0]) <= LONGEST_PATTERN
        try:
            Pattern("".join(expressions).strip() if is_valid else "")
        except InvalidPattern:
            is_valid = False
        if not is_valid:
            raise BadConfig(f"Illegal client matching pattern: {pattern}")


def listed(value: str) -> list[str]:
    """The items of a config of type LIST."""
    return [item for item in (part.strip() for part in value.split(",")) if item]
