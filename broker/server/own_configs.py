"""Configs of groups and of client metrics, as in Kafka. Those of client metrics are subscriptions (`telemetry.py`).

Those of groups are kept and shown, but nothing uses them: groups of the classic protocol have no configs. The layers of the
dynamic options of the broker are kept here too (`broker_layers.py`).
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from broker.light_named_tuples import NamedTuple
from broker.protocol.errors import ErrorCode
from broker.server.own_config_kinds import CLIENT_METRICS, GROUP, KINDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.storage import SecurityRecords

_RESETS = re.compile(r"earliest|latest|by_duration:P.+")
_ISOLATION = ("read_committed", "read_uncommitted")
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
    """`least` and `most` are the bounds that Kafka's broker options have by default."""

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


def _group_configs() -> list[OwnConfig]:
    found = []
    for kind in ("consumer", "share", "streams"):
        found += [
            OwnConfig(f"{kind}.session.timeout.ms", "INT", "45000", "When a silent member is removed.", 45000, 60000),
            OwnConfig(
                f"{kind}.heartbeat.interval.ms", "INT", "5000", "How often members send heartbeats.", 5000, 15000
            ),
        ]
    return [
        *found,
        OwnConfig("share.auto.offset.reset", "STRING", "latest", "Where a share group without offsets starts."),
        OwnConfig("share.isolation.level", "STRING", "read_uncommitted", "Whether aborted records are read."),
        OwnConfig("share.record.lock.duration.ms", "INT", "30000", "How long a record is acquired.", 15000, 60000),
        OwnConfig("streams.num.standby.replicas", "INT", "0", "The number of standby tasks.", 0, 2),
    ]


_METRICS_CONFIGS = [
    OwnConfig("interval.ms", "INT", "300000", "How often clients send their metrics.", 100, 3600000),
    OwnConfig("match", "LIST", "", "Which clients send them: KEY=REGULAR EXPRESSION."),
    OwnConfig("metrics", "LIST", "", "The prefixes of the names of the metrics."),
]
OWN_CONFIGS: Mapping[int, Mapping[str, OwnConfig]] = {
    GROUP: {config.name: config for config in _group_configs()},
    CLIENT_METRICS: {config.name: config for config in _METRICS_CONFIGS},
}


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


def check_own_configs(kind: int, configs: Mapping[str, str]) -> None:
    """Raise BadConfig, with Kafka's message, if these are not valid configs of a resource of this type."""
    for name, value in configs.items():
        config = OWN_CONFIGS[kind].get(name)
        if config is None:
            if kind == GROUP:
                raise BadConfig(f"Unknown group config name: {name}")
            raise BadConfig(f"Unknown client metrics configuration: {name}", ErrorCode.INVALID_REQUEST)
        if config.type == "INT":
            _check_number(kind, config, value)
        elif name == "match":
            _check_patterns(value)
        elif name == "share.auto.offset.reset" and not _RESETS.fullmatch(value):
            raise BadConfig(
                f"Invalid value {value} for configuration {name}: must be earliest, latest or by_duration:PERIOD"
            )
        elif name == "share.isolation.level" and value not in _ISOLATION:
            raise BadConfig(
                f"Invalid value {value} for configuration {name}: String must be one of: {', '.join(_ISOLATION)}"
            )


def _check_number(kind: int, config: OwnConfig, value: str) -> None:
    try:
        number = int(value)
    except ValueError:
        raise BadConfig(f"Invalid value {value} for configuration {config.name}: Not a number of type INT") from None
    if config.least <= number <= config.most:
        return
    if kind == CLIENT_METRICS:
        bounds = f"between {config.least} and {config.most} (1 hour)"
        raise BadConfig(
            f"Invalid value {value} for {config.name}, interval must be {bounds}", ErrorCode.INVALID_REQUEST
        )
    prefix, _, rest = config.name.partition(".")
    if number < config.least:
        raise BadConfig(f"{config.name} must be greater than or equal to group.{prefix}.min.{rest}")
    raise BadConfig(f"{config.name} must be less than or equal to group.{prefix}.max.{rest}")


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
