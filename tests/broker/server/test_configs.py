"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.alter_configs import AlterConfigsRequest
from broker.protocol.messages.describe_configs import DescribeConfigsRequest
from broker.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from broker.protocol.messages.list_config_resources import ListConfigResourcesRequest
from tests.harness.requests import create_topic, produce
from tests.harness.running import RunningBroker
from tests.harness.wire_client import WireClient

TOPIC, BROKER, METRICS, GROUP = 2, 4, 16, 32
FROM_TOPIC, DYNAMIC, DYNAMIC_DEFAULT, STATIC, DEFAULT = 1, 2, 3, 4, 5
SET, DELETE, APPEND, SUBTRACT = range(4)


def describe(
    client: WireClient, kind: int, name: str, *keys: str, version: int = 4, synonyms: bool = True, docs: bool = False
) -> Any:
    asked = DescribeConfigsRequest.Resource(
        resource_type=kind, resource_name=name, configuration_keys=list(keys) or None
    )
    request = DescribeConfigsRequest(resources=[asked], include_synonyms=synonyms, include_documentation=docs)
    (result,) = client.ask(request, version).results
    return result


def rows_of(result: Any) -> dict[str, Any]:
    return {row.name: row for row in result.configs}


def change(client: WireClient, kind: int, name: str, *changes: tuple[str, int, str | None], check: bool = False) -> int:
    configs = [
        IncrementalAlterConfigsRequest.Config(name=key, config_operation=operation, value=value)
        for key, operation, value in changes
    ]
    asked = IncrementalAlterConfigsRequest.Resource(resource_type=kind, resource_name=name, configs=configs)
    (row,) = client.ask(IncrementalAlterConfigsRequest(resources=[asked], validate_only=check)).responses
    assert bool(row.error_message) == bool(row.error_code)
    return int(row.error_code)


def listed(client: WireClient, *kinds: int, version: int = 1) -> list[tuple[int, str]]:
    answer = client.ask(ListConfigResourcesRequest(resource_types=list(kinds)), version)
    assert answer.error_code == ErrorCode.NONE
    return [(row.resource_type, row.resource_name) for row in answer.config_resources]


def replace(client: WireClient, kind: int, name: str, check: bool = False, **configs: str | None) -> int:
    rows = [AlterConfigsRequest.Config(name=key.replace("_", "."), value=value) for key, value in configs.items()]
    asked = AlterConfigsRequest.Resource(resource_type=kind, resource_name=name, configs=rows)
    (row,) = client.ask(AlterConfigsRequest(resources=[asked], validate_only=check)).responses
    return int(row.error_code)


def test_a_password_is_described_without_its_value(tmp_path: Path) -> None:
    with RunningBroker(tmp_path / "data", ssl_key_password="hunter2") as running, running.client() as client:
        (given,) = describe(client, BROKER, "1", "ssl.key.password").configs
        (absent,) = describe(client, BROKER, "1", "ssl.keystore.password").configs
    assert (given.value, given.config_source, given.is_sensitive, given.config_type) == (None, STATIC, True, 9)
    assert [(s.name, s.value, s.source) for s in given.synonyms] == [("ssl.key.password", None, STATIC)]
    assert (absent.value, absent.config_source, absent.is_sensitive) == (None, DEFAULT, True)


def test_the_options_of_a_listener_are_described_with_the_general_ones_as_synonyms(tmp_path: Path) -> None:
    mine, secret = "listener.name.plaintext.ssl.client.auth", "listener.name.plaintext.ssl.key.password"
    options = {mine: "requested", secret: "hunter2", "ssl.client.auth": "required"}
    with RunningBroker(tmp_path / "data", **options) as running, running.client() as client:
        rows = rows_of(describe(client, BROKER, "1", mine, secret))
    row = rows[mine]
    assert (row.value, row.config_source, row.read_only, row.config_type) == ("requested", STATIC, True, 2)
    assert [(s.name, s.value, s.source) for s in row.synonyms] == [
        (mine, "requested", STATIC),
        ("ssl.client.auth", "required", STATIC),
        ("ssl.client.auth", "none", DEFAULT),
    ]
    assert (rows[secret].value, rows[secret].is_sensitive, rows[secret].synonyms[0].value) == (None, True, None)


def test_the_configs_of_a_topic_name_the_source_of_each_value(client: WireClient) -> None:
    create_topic(client, "t", retention_ms="1000")

    result = describe(client, TOPIC, "t")

    assert (result.error_code, result.error_message) == (ErrorCode.NONE, "")
    rows = rows_of(result)
    own, inherited = rows["retention.ms"], rows["segment.bytes"]
    assert (own.value, own.config_source, own.read_only, own.is_sensitive) == ("1000", FROM_TOPIC, False, False)
    # As in Kafka, the same option in other units is none if the option itself has no value.
    assert [(s.name, s.value, s.source) for s in own.synonyms] == [("retention.ms", "1000", FROM_TOPIC)]
    assert (inherited.value, inherited.config_source) == ("1073741824", DEFAULT)
    assert [(s.name, s.value, s.source) for s in inherited.synonyms] == [("log.segment.bytes", "1073741824", DEFAULT)]


def test_broker_options_are_the_defaults_of_topics(tmp_path: Path) -> None:
    with (
        RunningBroker(tmp_path, log_retention_hours="2", log_roll_ms="5000", log_segment_bytes="2000000") as running,
        running.client() as client,
    ):
        create_topic(client, "t")
        rows = rows_of(describe(client, TOPIC, "t"))
    # Kafka names no source either for a value that is given in other units.
    assert (rows["retention.ms"].value, rows["retention.ms"].config_source) == ("7200000", DEFAULT)
    assert [(s.name, s.value, s.source) for s in rows["segment.ms"].synonyms] == [
        ("log.roll.ms", "5000", STATIC),
        ("log.roll.hours", "168", DEFAULT),
    ]
    assert (rows["segment.bytes"].value, rows["segment.bytes"].config_source) == ("2000000", STATIC)


def test_types_and_docs_come_since_version_3_and_synonyms_on_request(client: WireClient) -> None:
    create_topic(client, "t")
    for version in range(1, 5):
        described = describe(client, TOPIC, "t", "retention.ms", version=version, synonyms=False, docs=True)
        row = rows_of(described)["retention.ms"]
        assert row.synonyms == []
        assert row.config_type == (5 if version >= 3 else 0)
        assert bool(row.documentation) == (version >= 3)


def test_only_the_named_configs_are_described(client: WireClient) -> None:
    create_topic(client, "t")
    assert sorted(rows_of(describe(client, TOPIC, "t", "retention.ms", "no.such", "cleanup.policy"))) == [
        "cleanup.policy",
        "retention.ms",
    ]


def test_a_resource_without_configs_gets_an_error(client: WireClient) -> None:
    for kind, name, code in (
        (TOPIC, "absent", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "not valid", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "2", ErrorCode.INVALID_REQUEST),
        (BROKER, "one", ErrorCode.INVALID_REQUEST),
        (GROUP, "", ErrorCode.INVALID_REQUEST),
        (99, "x", ErrorCode.INVALID_REQUEST),
    ):
        result = describe(client, kind, name)
        assert (result.error_code, result.configs) == (code, [])
    assert describe(client, GROUP, "g").error_code == ErrorCode.NONE


def test_the_options_of_the_broker_are_described_with_their_source(tmp_path: Path) -> None:
    with RunningBroker(tmp_path, num_partitions="3") as running, running.client() as client:
        rows = rows_of(describe(client, BROKER, "1", docs=True))
        assert rows_of(describe(client, BROKER, "")) == {}
    given, default = rows["num.partitions"], rows["message.max.bytes"]
    assert (given.value, given.config_source, given.read_only) == ("3", STATIC, True)
    assert [(s.value, s.source) for s in given.synonyms] == [("3", STATIC), ("1", DEFAULT)]
    assert (default.value, default.config_source, default.read_only) == ("1048588", DEFAULT, False)
    assert default.documentation


def test_a_changed_topic_config_is_described_and_takes_effect(client: WireClient) -> None:
    create_topic(client, "t")
    assert produce(client, "t", b"x" * 500).error_code == ErrorCode.NONE

    assert change(client, TOPIC, "t", ("max.message.bytes", SET, "200")) == ErrorCode.NONE

    row = rows_of(describe(client, TOPIC, "t"))["max.message.bytes"]
    assert (row.value, row.config_source) == ("200", FROM_TOPIC)
    assert produce(client, "t", b"x" * 500).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert change(client, TOPIC, "t", ("max.message.bytes", DELETE, None)) == ErrorCode.NONE
    assert produce(client, "t", b"x" * 500).error_code == ErrorCode.NONE


def test_items_are_appended_to_lists_and_subtracted_from_them(client: WireClient) -> None:
    create_topic(client, "t")

    def policy() -> str:
        return str(rows_of(describe(client, TOPIC, "t"))["cleanup.policy"].value)

    assert change(client, TOPIC, "t", ("cleanup.policy", APPEND, "compact")) == ErrorCode.NONE
    assert policy() == "delete,compact"
    assert change(client, TOPIC, "t", ("cleanup.policy", APPEND, "compact")) == ErrorCode.NONE
    assert policy() == "delete,compact"
    assert change(client, TOPIC, "t", ("cleanup.policy", SUBTRACT, "delete")) == ErrorCode.NONE
    assert policy() == "compact"
    assert change(client, TOPIC, "t", ("retention.ms", APPEND, "1")) == ErrorCode.INVALID_CONFIG


def test_an_invalid_change_changes_nothing(client: WireClient) -> None:
    create_topic(client, "t")
    before = rows_of(describe(client, TOPIC, "t"))

    for changes, code in (
        ([("retention.ms", SET, "5"), ("segment.bytes", SET, "many")], ErrorCode.INVALID_CONFIG),
        ([("no.such", SET, "5")], ErrorCode.INVALID_CONFIG),
        ([("retention.ms", SET, None)], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", SET, "5"), ("retention.ms", DELETE, None)], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", 9, "5")], ErrorCode.INVALID_REQUEST),
    ):
        assert change(client, TOPIC, "t", *changes) == code
    assert change(client, TOPIC, "t", ("retention.ms", SET, "5"), check=True) == ErrorCode.NONE
    assert change(client, TOPIC, "absent", ("retention.ms", SET, "5")) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    assert rows_of(describe(client, TOPIC, "t")) == before


def test_alter_configs_replaces_all_configs(client: WireClient) -> None:
    create_topic(client, "t", retention_ms="1000", segment_ms="2000")

    assert replace(client, TOPIC, "t", check=True, segment_ms="3000") == ErrorCode.NONE
    assert rows_of(describe(client, TOPIC, "t"))["segment.ms"].value == "2000"
    assert replace(client, TOPIC, "t", segment_ms="3000") == ErrorCode.NONE

    rows = rows_of(describe(client, TOPIC, "t"))
    assert (rows["segment.ms"].value, rows["retention.ms"].config_source) == ("3000", DEFAULT)
    assert replace(client, TOPIC, "t", segment_ms=None) == ErrorCode.INVALID_REQUEST


def test_a_resource_named_twice_stays_unchanged(client: WireClient) -> None:
    create_topic(client, "t")
    config = IncrementalAlterConfigsRequest.Config(name="retention.ms", config_operation=SET, value="5")
    asked = IncrementalAlterConfigsRequest.Resource(resource_type=TOPIC, resource_name="t", configs=[config])

    rows = client.ask(IncrementalAlterConfigsRequest(resources=[asked, asked], validate_only=False)).responses

    assert [row.error_code for row in rows] == [ErrorCode.INVALID_REQUEST] * 2
    assert rows_of(describe(client, TOPIC, "t"))["retention.ms"].config_source == DEFAULT


def test_changed_defaults_of_the_broker_survive_a_restart(running: RunningBroker) -> None:
    with running.client() as client:
        create_topic(client, "t")
        assert change(client, BROKER, "", ("message.max.bytes", SET, "200")) == ErrorCode.NONE
        assert produce(client, "t", b"x" * 500).error_code == ErrorCode.MESSAGE_TOO_LARGE
    running.restart()
    with running.client() as client:
        assert produce(client, "t", b"x" * 500).error_code == ErrorCode.MESSAGE_TOO_LARGE
        row = rows_of(describe(client, TOPIC, "t"))["max.message.bytes"]
        assert (row.value, row.config_source) == ("200", DYNAMIC_DEFAULT)
        row = rows_of(describe(client, BROKER, "1"))["message.max.bytes"]
        assert (row.value, row.config_source) == ("200", DYNAMIC_DEFAULT)
        (row,) = describe(client, BROKER, "").configs
        assert (row.name, row.value, row.config_source) == ("message.max.bytes", "200", DYNAMIC_DEFAULT)
        assert change(client, BROKER, "", ("message.max.bytes", DELETE, None)) == ErrorCode.NONE
        assert produce(client, "t", b"x" * 500).error_code == ErrorCode.NONE


def test_the_options_of_this_broker_hide_those_of_all_brokers(running: RunningBroker) -> None:
    def shown(client: WireClient, kind: int, name: str, key: str) -> list[tuple[str, int]]:
        row = rows_of(describe(client, kind, name))[key]
        assert row.value == row.synonyms[0].value
        return [(synonym.value, synonym.source) for synonym in row.synonyms]

    default = ("1048588", DEFAULT)
    with running.client() as client:
        create_topic(client, "t")
        assert change(client, BROKER, "1", ("message.max.bytes", SET, "100")) == ErrorCode.NONE
        assert change(client, BROKER, "", ("message.max.bytes", SET, "900")) == ErrorCode.NONE
        assert produce(client, "t", b"x" * 500).error_code == ErrorCode.MESSAGE_TOO_LARGE
    running.restart()
    with running.client() as client:
        both = [("100", DYNAMIC), ("900", DYNAMIC_DEFAULT), default]
        assert shown(client, BROKER, "1", "message.max.bytes") == both
        assert shown(client, TOPIC, "t", "max.message.bytes") == both
        assert shown(client, BROKER, "", "message.max.bytes") == [("900", DYNAMIC_DEFAULT)]
        assert change(client, BROKER, "1", ("message.max.bytes", DELETE, None)) == ErrorCode.NONE
        assert shown(client, BROKER, "1", "message.max.bytes") == [("900", DYNAMIC_DEFAULT), default]
        assert produce(client, "t", b"x" * 500).error_code == ErrorCode.NONE
        assert change(client, BROKER, "1", ("message.max.bytes", SET, "100")) == ErrorCode.NONE
        assert change(client, BROKER, "", ("message.max.bytes", DELETE, None)) == ErrorCode.NONE
        assert shown(client, BROKER, "1", "message.max.bytes") == [("100", DYNAMIC), default]
        assert produce(client, "t", b"x" * 500).error_code == ErrorCode.MESSAGE_TOO_LARGE
        assert change(client, BROKER, "1", ("message.max.bytes", DELETE, None)) == ErrorCode.NONE
        assert shown(client, BROKER, "1", "message.max.bytes") == [default]


def test_other_options_of_the_broker_cannot_change(client: WireClient) -> None:
    assert change(client, BROKER, "1", ("num.partitions", SET, "5")) == ErrorCode.INVALID_REQUEST
    assert change(client, BROKER, "7", ("message.max.bytes", SET, "5")) == ErrorCode.INVALID_REQUEST
    assert change(client, BROKER, "1", ("message.max.bytes", SET, "x")) == ErrorCode.INVALID_REQUEST
    assert change(client, GROUP, "g", ("consumer.session.timeout.ms", SET, "5")) == ErrorCode.INVALID_CONFIG


def test_values_are_shown_as_they_are_parsed(client: WireClient) -> None:
    create_topic(client, "t")
    for name, value, shown in (
        ("retention.ms", " +5 ", "5"),
        ("preallocate", "TRUE", "true"),
        ("min.cleanable.dirty.ratio", "1e-1", "0.1"),
        ("cleanup.policy", " compact , delete ", "compact,delete"),
        ("cleanup.policy", "", ""),
        ("follower.replication.throttled.replicas", "", ""),
    ):
        assert change(client, TOPIC, "t", (name, SET, value)) == ErrorCode.NONE
        row = rows_of(describe(client, TOPIC, "t"))[name]
        assert (row.value, row.config_source) == (shown, FROM_TOPIC)


def test_a_list_may_be_empty_and_other_values_may_not(client: WireClient) -> None:
    create_topic(client, "t")
    assert change(client, TOPIC, "t", ("cleanup.policy", SUBTRACT, "delete")) == ErrorCode.NONE
    assert rows_of(describe(client, TOPIC, "t"))["cleanup.policy"].value == ""
    # Neither deleted nor compacted, the topic is served like others.
    assert produce(client, "t", b"x").error_code == ErrorCode.NONE
    assert change(client, BROKER, "", ("log.cleanup.policy", SET, "")) == ErrorCode.NONE
    for name in ("retention.ms", "preallocate", "compression.type", "min.cleanable.dirty.ratio"):
        assert change(client, TOPIC, "t", (name, SET, "")) == ErrorCode.INVALID_CONFIG


def test_groups_and_client_metrics_keep_their_configs(running: RunningBroker) -> None:
    with running.client() as client:
        assert change(client, GROUP, "g", ("consumer.session.timeout.ms", SET, "46000")) == ErrorCode.NONE
        assert (
            change(client, METRICS, "m", ("interval.ms", SET, "5000"), ("match", SET, "client_id=a.*"))
            == ErrorCode.NONE
        )
        assert change(client, METRICS, "gone", ("metrics", SET, "")) == ErrorCode.NONE
        assert change(client, METRICS, "gone", ("metrics", DELETE, None)) == ErrorCode.NONE
    running.restart()
    with running.client() as client:
        row = rows_of(describe(client, GROUP, "g"))["consumer.session.timeout.ms"]
        assert (row.value, row.config_source) == ("46000", 8)
        rows = rows_of(describe(client, METRICS, "m"))
        assert {name: (row.value, row.config_source) for name, row in rows.items()} == {
            "interval.ms": ("5000", 7),
            "match": ("client_id=a.*", 7),
            "metrics": ("", DEFAULT),
        }
        assert listed(client, version=0) == [(METRICS, "m")]
        assert listed(client, METRICS, GROUP) == [(METRICS, "m"), (GROUP, "g")]


def test_resources_with_configs_are_listed_by_type(client: WireClient) -> None:
    create_topic(client, "t")
    assert (TOPIC, "t") in listed(client)
    assert listed(client, BROKER, 8, BROKER) == [(BROKER, "1"), (8, "1")]
    assert listed(client, GROUP) == listed(client, version=0) == []
    answer = client.ask(ListConfigResourcesRequest(resource_types=[TOPIC, 99]))
    assert (answer.error_code, answer.config_resources) == (ErrorCode.UNSUPPORTED_VERSION, [])
