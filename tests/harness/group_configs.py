"""Changes of the configs of groups, with the answers that a Kafka 4.1 gave to them."""

from __future__ import annotations

from typing import Any

from broker.protocol.messages.describe_configs import DescribeConfigsRequest
from broker.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from tests.harness.wire_client import WireClient

GROUP = 32
OWN, DEFAULT = 8, 5
SET, DELETE, APPEND = 0, 1, 2
# The broker that gave the answers.
OPTIONS = {
    "group.consumer.session.timeout.ms": "50000",
    "group.consumer.min.session.timeout.ms": "100",
    "group.consumer.heartbeat.interval.ms": "7000",
    "group.consumer.min.heartbeat.interval.ms": "10",
}
DEFAULTS = {
    "consumer.heartbeat.interval.ms": "7000",
    "consumer.session.timeout.ms": "50000",
    "share.auto.offset.reset": "latest",
    "share.heartbeat.interval.ms": "5000",
    "share.isolation.level": "read_uncommitted",
    "share.record.lock.duration.ms": "30000",
    "share.session.timeout.ms": "45000",
    "streams.heartbeat.interval.ms": "5000",
    "streams.num.standby.replicas": "0",
    "streams.session.timeout.ms": "45000",
}
SESSION, BEAT, LOCK = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms", "share.record.lock.duration.ms"
RESET, LEVEL, STANDBYS = "share.auto.offset.reset", "share.isolation.level", "streams.num.standby.replicas"
_GE, _LE = "{} must be greater than or equal to {}", "{} must be less than or equal to {}"
_LATE = f"{SESSION} must be greater than {BEAT}"


def _invalid(name: str, value: str, problem: str) -> str:
    return f"Invalid value {value} for configuration {name}: {problem}"


def _bad_reset(value: str) -> str:
    allowed = "The value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
    return _invalid(RESET, value, f"Invalid value `{value}` for configuration {RESET}. {allowed}")


# What is set on a group without configs, and the message of the refusal; None: it is allowed.
CASES: list[tuple[dict[str, str], str | None]] = [
    ({SESSION: "99"}, _GE.format(SESSION, "group.consumer.min.session.timeout.ms")),
    ({SESSION: "60001"}, _LE.format(SESSION, "group.consumer.max.session.timeout.ms")),
    ({SESSION: "60000"}, None),
    ({SESSION: " +50000 "}, None),
    ({SESSION: "7000"}, _LATE),
    ({SESSION: "7001"}, None),
    ({SESSION: "0"}, _invalid(SESSION, "0", "Value must be at least 1")),
    ({SESSION: "-2147483648"}, _invalid(SESSION, "-2147483648", "Value must be at least 1")),
    *(
        ({SESSION: value}, _invalid(SESSION, value, "Not a number of type INT"))
        for value in ("", "x", "1e4", "50000.5", "50_000", "2147483648", "-2147483649")
    ),
    ({BEAT: "9"}, _GE.format(BEAT, "group.consumer.min.heartbeat.interval.ms")),
    ({BEAT: "15001"}, _LE.format(BEAT, "group.consumer.max.heartbeat.interval.ms")),
    ({SESSION: "14000", BEAT: "14000"}, _LATE),
    ({SESSION: "9", BEAT: "9"}, _GE.format(BEAT, "group.consumer.min.heartbeat.interval.ms")),
    ({SESSION: "9", "no.such": "1"}, "Unknown group config name: no.such"),
    (
        {"share.session.timeout.ms": "44999"},
        "share.session.timeout.ms must be greater than or equal to group.share.min.session.timeout.ms",
    ),
    (
        {"share.heartbeat.interval.ms": "15001"},
        "share.heartbeat.interval.ms must be less than or equal to group.share.max.heartbeat.interval.ms",
    ),
    ({LOCK: "999"}, _invalid(LOCK, "999", "Value must be at least 1000")),
    ({LOCK: "1000"}, _GE.format(LOCK, "group.share.min.record.lock.duration.ms")),
    ({LOCK: "60001"}, _LE.format(LOCK, "group.share.max.record.lock.duration.ms")),
    ({LEVEL: "read_committed"}, None),
    (
        {LEVEL: "READ_COMMITTED"},
        _invalid(LEVEL, "READ_COMMITTED", "String must be one of: read_committed, read_uncommitted"),
    ),
    *(
        ({RESET: value}, None)
        for value in (
            "earliest",
            "latest",
            "by_duration:P1D",
            "by_duration:PT0S",
            "by_duration:pt1.5s",
            "by_duration:PT1H-30M",
            "by_duration:-PT-1H",
            "by_duration:P1DT2H3M4,5S",
        )
    ),
    *(
        ({RESET: value}, _bad_reset(value))
        for value in (
            "",
            "none",
            "Earliest",
            "by_duration",
            "by_duration:",
            "by_duration:x",
            "by_duration:P",
            "by_duration:PT",
            "by_duration:P1DT",
            "by_duration:P1W",
            "by_duration:P1Y",
            "by_duration:-PT1H",
            "by_duration:PT-0.5S",
            "BY_DURATION:PT1H",
        )
    ),
    (
        {"streams.session.timeout.ms": "44999"},
        "streams.session.timeout.ms must be greater than or equal to group.streams.min.session.timeout.ms",
    ),
    ({STANDBYS: "-1"}, _invalid(STANDBYS, "-1", "Value must be at least 0")),
    ({STANDBYS: "2"}, None),
    ({STANDBYS: "3"}, _LE.format(STANDBYS, "group.streams.max.standby.replicas")),
]


def alter(
    client: WireClient, group: str, changes: dict[str, str | None], *, only_check: bool = False, operation: int = SET
) -> tuple[int, str | None]:
    """Set configs; None removes one."""
    rows = [
        IncrementalAlterConfigsRequest.Config(
            name=name, config_operation=DELETE if value is None else operation, value=value
        )
        for name, value in changes.items()
    ]
    asked = IncrementalAlterConfigsRequest.Resource(resource_type=GROUP, resource_name=group, configs=rows)
    (row,) = client.ask(IncrementalAlterConfigsRequest(resources=[asked], validate_only=only_check)).responses
    return row.error_code, row.error_message


def describe(client: WireClient, group: str) -> dict[str, tuple[str, int]]:
    """Value and source of each config; the synonyms say the same."""
    asked = DescribeConfigsRequest.Resource(resource_type=GROUP, resource_name=group, configuration_keys=None)
    (found,) = client.ask(DescribeConfigsRequest(resources=[asked], include_synonyms=True)).results
    for row in found.configs:
        assert [tuple(one) for one in _plain(row.synonyms)] == [(row.name, row.value, row.config_source)]
    return {row.name: (row.value, row.config_source) for row in found.configs}


def _plain(synonyms: Any) -> Any:
    return [(one.name, one.value, one.source) for one in synonyms]
