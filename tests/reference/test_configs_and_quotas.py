"""Requests about configs, quotas and features are answered as by a real Kafka, and Kafka's own tools work on our broker."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.config.options import OPTIONS
from broker.protocol.messages.alter_client_quotas import AlterClientQuotasRequest
from broker.protocol.messages.create_topics import CreateTopicsRequest
from broker.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest
from broker.protocol.messages.describe_configs import DescribeConfigsRequest
from broker.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from broker.protocol.messages.list_config_resources import ListConfigResourcesRequest
from tests.harness import feature_requests
from tests.harness.reference_kafka import KafkaTools, ReferenceKafka
from tests.harness.requests import batch, create_topic, fetch_request, produce_request
from tests.harness.running import RunningBroker, until
from tests.harness.wire_client import WireClient

TOPIC, BROKER, METRICS, GROUP = 2, 4, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
POLICY, RETENTION, DEFAULT_POLICY = "cleanup.policy", "retention.ms", "log.cleanup.policy"
SESSION, INTERVAL, MATCH = "consumer.session.timeout.ms", "interval.ms", "match"
# Resource, name, and changes of its configs one after the other.
CHANGES: list[tuple[int, str, list[list[tuple[str, int, str | None]]]]] = [
    (
        TOPIC,
        "t",
        [
            [(POLICY, SET, "")],
            [(POLICY, SET, None)],
            [(POLICY, SET, "compact")],
            [(POLICY, APPEND, "delete,delete")],
            [(POLICY, SUBTRACT, "compact")],
            [(POLICY, SUBTRACT, "delete")],
            [(POLICY, DELETE, "x")],
            [(POLICY, APPEND, "compact")],
            [(POLICY, APPEND, "")],
            [(POLICY, APPEND, None)],
            [(POLICY, APPEND, " delete")],
            [(POLICY, SET, "compact,,delete")],
            [(POLICY, SET, " compact , delete ")],
            [(POLICY, DELETE, None)],
            [(RETENTION, SET, "")],
            [(RETENTION, SET, " +5 ")],
            [(RETENTION, SET, "5.0")],
            [(RETENTION, SET, "-2")],
            [(RETENTION, APPEND, "5")],
            [(RETENTION, SET, "5"), (RETENTION, DELETE, None)],
            [(RETENTION, SET, None), ("segment.ms", SET, None)],
            [(RETENTION, DELETE, None)],
            [("preallocate", SET, "TRUE")],
            [("min.cleanable.dirty.ratio", SET, "1e-1")],
            [("follower.replication.throttled.replicas", SET, "")],
            [("leader.replication.throttled.replicas", APPEND, "0:1")],
            [("compression.type", SET, "")],
            [("segment.bytes", SET, "1048575")],
            [("remote.storage.enable", SET, "true")],
            [("no.such", SET, "")],
            [],
        ],
    ),
    (TOPIC, "absent", [[(RETENTION, SET, "5")]]),
    (TOPIC, "", [[(RETENTION, SET, "5")]]),
    *[
        (
            BROKER,
            name,
            [
                [(DEFAULT_POLICY, SET, "")],
                [(DEFAULT_POLICY, SET, "compact")],
                [(DEFAULT_POLICY, APPEND, "delete")],
                [(DEFAULT_POLICY, SUBTRACT, "compact")],
                [("log.retention.ms", SET, "")],
                [("log.retention.ms", SET, "12345")],
                [("log.retention.hours", SET, "1")],
                [("message.max.bytes", SET, "-1")],
                [("num.partitions", SET, "4")],
            ],
        )
        for name in ("", "1")
    ],
    (BROKER, "1", [[(DEFAULT_POLICY, DELETE, None), ("log.retention.ms", DELETE, None)]]),
    (BROKER, "", [[(DEFAULT_POLICY, DELETE, None), ("log.retention.ms", DELETE, None)]]),
    (BROKER, "2", [[("log.retention.ms", SET, "1")]]),
    (BROKER, "x", [[("log.retention.ms", SET, "1")]]),
    (
        GROUP,
        "g",
        [
            [(SESSION, SET, "46000")],
            [(SESSION, SET, "")],
            [(SESSION, SET, "1")],
            [("share.isolation.level", SET, "")],
            [("share.auto.offset.reset", APPEND, "x")],
            [("nope", SET, "1")],
            [("share.auto.offset.reset", SET, "earliest")],
        ],
    ),
    (GROUP, "", [[(SESSION, SET, "46000")]]),
    (
        METRICS,
        "m",
        [
            [(INTERVAL, SET, "5000")],
            [(INTERVAL, SET, "")],
            [(INTERVAL, SET, "1")],
            [("metrics", SET, "")],
            [("metrics", APPEND, "c")],
            [(MATCH, SET, "client_id=a")],
            [(MATCH, SET, "bogus")],
            [(MATCH, SET, "client_id=[")],
            [("nope", SET, "")],
        ],
    ),
    (METRICS, "", [[(INTERVAL, SET, "46000")]]),
    (99, "x", [[("a", SET, "b")]]),
]
# Their messages quote the offending item, or have a text of Kafka's own.
OWN_WORDS = (40, 17)
# Options with values, defaults or types of our own.
OWN_OPTIONS = {
    "advertised.listeners",
    "broker.id",
    "controller.listener.names",
    "group.initial.rebalance.delay.ms",
    "listener.security.protocol.map",
    "listeners",
    "node.id",
    "sasl.oauthbearer.expected.audience",
    "sasl.server.callback.handler.class",
}
# Kafka 4.1 sets it by itself (KIP-966).
SKIPPED = "min.insync.replicas"

QUOTAS: list[tuple[list[tuple[str, str | None]], list[tuple[str, float | None]]]] = [
    ([("user", "alice")], [("producer_byte_rate", 1000.0)]),
    ([("user", "alice")], [("producer_byte_rate", 1000.5)]),
    ([("user", "alice")], [("producer_byte_rate", 0.0)]),
    ([("user", "alice")], [("producer_byte_rate", 1e30)]),
    ([("user", "alice")], [("request_percentage", 0.5)]),
    ([("user", "alice")], [("nope", 1.0), ("consumer_byte_rate", 5.0)]),
    ([("user", "alice")], [("nope", None)]),
    ([("user", "alice")], [("consumer_byte_rate", 1.0), ("consumer_byte_rate", 5.0)]),
    ([("user", "alice")], []),
    ([], [("consumer_byte_rate", 1.0)]),
    ([("user", "")], [("consumer_byte_rate", 1.0)]),
    ([("planet", "earth")], [("consumer_byte_rate", 1.0)]),
    ([("user", "a"), ("user", "b")], [("consumer_byte_rate", 1.0)]),
    ([("user", "a"), ("ip", "10.0.0.1")], [("consumer_byte_rate", 1.0)]),
    ([("ip", "not a host")], [("connection_creation_rate", 1.0)]),
    ([("ip", "10.0.0.1")], [("connection_creation_rate", 1000.0)]),
    ([("ip", "10.0.0.1")], [("connection_creation_rate", 1e11)]),
    ([("ip", "10.0.0.1")], [("producer_byte_rate", 1.0)]),
    ([("user", "alice"), ("client-id", "c")], [("consumer_byte_rate", 12.0), ("controller_mutation_rate", 0.5)]),
    ([("user", None), ("client-id", "c")], [("consumer_byte_rate", 13.0)]),
    ([("user", "alice"), ("client-id", None)], [("consumer_byte_rate", 14.0)]),
    ([("client-id", "other")], [("consumer_byte_rate", 15.0)]),
    ([("client-id", "other")], [("consumer_byte_rate", None)]),
]
FILTERS: list[tuple[list[tuple[str, int, str | None]], bool]] = [
    ([], False),
    ([], True),
    ([("user", 0, "alice")], False),
    ([("user", 0, "alice")], True),
    ([("user", 1, None)], False),
    ([("user", 2, None)], True),
    ([("user", 2, None), ("client-id", 2, None)], True),
    ([("user", 0, "alice"), ("client-id", 2, None)], False),
    ([("ip", 2, None)], False),
    ([("", 2, None)], False),
    ([("planet", 2, None)], False),
    ([("user", 2, None), ("user", 2, None)], False),
    ([("user", 0, None)], False),
    ([("user", 1, "a")], False),
    ([("user", 3, None)], False),
    ([("ip", 2, None), ("user", 2, None)], False),
]


@pytest.fixture(scope="module")
def theirs(tools: KafkaTools) -> Iterator[ReferenceKafka]:
    with ReferenceKafka() as kafka:
        yield kafka


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[RunningBroker]:
    with RunningBroker(tmp_path / "data") as running:
        yield running


def connect(kafka: ReferenceKafka, client_id: str = "test") -> WireClient:
    host, _, port = kafka.bootstrap_servers.rpartition(":")
    return WireClient((host, int(port)), client_id=client_id)


# -- configs


def change(client: WireClient, kind: int, name: str, changes: list[tuple[str, int, str | None]]) -> Any:
    configs = [
        IncrementalAlterConfigsRequest.Config(name=key, config_operation=operation, value=value)
        for key, operation, value in changes
    ]
    asked = IncrementalAlterConfigsRequest.Resource(resource_type=kind, resource_name=name, configs=configs)
    for only_check in (True, False):
        request = IncrementalAlterConfigsRequest(resources=[asked], validate_only=only_check)
        (row,) = client.ask(request).responses
    return row.error_code, None if row.error_code in OWN_WORDS else row.error_message


def described(client: WireClient, kind: int, name: str, keys: set[str]) -> Any:
    asked = DescribeConfigsRequest.Resource(
        resource_type=kind, resource_name=name, configuration_keys=sorted(keys) or None
    )
    (found,) = client.ask(DescribeConfigsRequest(resources=[asked], include_synonyms=True)).results
    rows = sorted(
        (
            row.name,
            row.value,
            row.config_source,
            row.is_sensitive,
            row.config_type,
            [(synonym.name, synonym.value, synonym.source) for synonym in row.synonyms],
        )
        for row in found.configs
        if row.name != SKIPPED
    )
    return found.error_code, rows


def listed(client: WireClient, kinds: list[int], version: int) -> Any:
    answer = client.ask(ListConfigResourcesRequest(resource_types=kinds), version)
    return answer.error_code, sorted(
        (row.resource_type, row.resource_name)
        for row in answer.config_resources
        if not row.resource_name.startswith("__")
    )


def changed_configs(client: WireClient) -> Iterator[tuple[str, Any]]:
    """What a cluster answers to all changes, each with what is described after it."""
    create_topic(client, "t")
    for kind, name, steps in CHANGES:
        for step in steps:
            answer = change(client, kind, name, step)
            # Kafka's brokers take a moment to see what its controller has changed.
            yield f"{kind} {name!r} {step}", answer
            if answer[0] == 0 or kind != 99:
                yield f"{kind} {name!r} after {step}", settled(client, kind, name, {key for key, *_ in step})
    for kinds in ([], [TOPIC], [BROKER, 8], [METRICS, GROUP], [0], [TOPIC, 99]):
        yield f"list {kinds}", listed(client, kinds, 1)
    yield "list v0", listed(client, [], 0)


def settled(client: WireClient, kind: int, name: str, keys: set[str]) -> Any:
    """What is described once three answers in a row are equal."""
    seen: list[Any] = []

    def same() -> bool:
        seen.append(described(client, kind, name, keys if kind != METRICS else set()))
        return len(seen) >= 3 and seen[-1] == seen[-2] == seen[-3]

    until(same)
    return seen[-1]


def test_configs_are_changed_and_described_alike(theirs: ReferenceKafka, ours: RunningBroker) -> None:
    with connect(theirs) as client:
        expected = dict(changed_configs(client))
    with ours.client() as client:
        found = dict(changed_configs(client))
    assert found == expected


def test_options_of_the_broker_are_described_alike(theirs: ReferenceKafka, ours: RunningBroker) -> None:
    with connect(theirs) as their, ours.client() as our:
        expected = {row[0]: row for row in described(their, BROKER, "1", set(OPTIONS))[1]}
        found = {row[0]: row for row in described(our, BROKER, "1", set())[1]}
    differing = {name for name, row in found.items() if name in expected and row != expected[name]}
    assert differing == OWN_OPTIONS


# -- quotas


def set_quotas(
    client: WireClient, entity: list[tuple[str, str | None]], values: list[tuple[str, float | None]]
) -> list[Any]:
    parts = [AlterClientQuotasRequest.Entity(entity_type=kind, entity_name=name) for kind, name in entity]
    ops = [AlterClientQuotasRequest.Op(key=key, value=value or 0.0, remove=value is None) for key, value in values]
    entry = AlterClientQuotasRequest.Entry(entity=parts, ops=ops)
    rows = client.ask(AlterClientQuotasRequest(entries=[entry])).entries
    return [
        (row.error_code, row.error_message, sorted((part.entity_type, part.entity_name) for part in row.entity))
        for row in rows
    ]


def found_quotas(client: WireClient, components: list[tuple[str, int, str | None]], *, strict: bool) -> Any:
    asked = [
        DescribeClientQuotasRequest.Component(entity_type=kind, match_type=match_type, match=name)
        for kind, match_type, name in components
    ]
    answer = client.ask(DescribeClientQuotasRequest(components=asked, strict=strict))
    entries = [
        (
            sorted((part.entity_type, str(part.entity_name)) for part in entry.entity),
            sorted((value.key, value.value) for value in entry.values),
        )
        for entry in answer.entries or ()
    ]
    return answer.error_code, answer.error_message, answer.entries is None, sorted(entries)


def remove_quotas(client: WireClient) -> None:
    answer = client.ask(DescribeClientQuotasRequest(components=[], strict=False))
    for entry in answer.entries:
        entity = [(part.entity_type, part.entity_name) for part in entry.entity]
        set_quotas(client, entity, [(value.key, None) for value in entry.values])
    until(lambda: found_quotas(client, [], strict=False)[3] == [])


def test_quotas_are_changed_and_described_alike(theirs: ReferenceKafka, ours: RunningBroker) -> None:
    with connect(theirs) as their, ours.client() as our:
        for entity, values in QUOTAS:
            assert set_quotas(our, entity, values) == set_quotas(their, entity, values), (entity, values)
        expected = found_quotas(our, [], strict=False)
        until(lambda: found_quotas(their, [], strict=False) == expected)
        for components, strict in FILTERS:
            assert found_quotas(our, components, strict=strict) == found_quotas(their, components, strict=strict)
        remove_quotas(their)


def throttled(client: WireClient, connected: Any) -> list[int]:
    """The throttle times in milliseconds of requests that exceed a quota, each on a connection of its own."""
    create_topic(client, "throttled")
    client.ask(produce_request("throttled", batch(b"x" * 50_000)), 12)
    for entity, key, value in (
        ("producer", "producer_byte_rate", 1000.0),
        ("consumer", "consumer_byte_rate", 1000.0),
        ("busy", "request_percentage", 1e-6),
        ("admin", "controller_mutation_rate", 0.1),
    ):
        assert set_quotas(client, [("client-id", entity)], [(key, value)])[0][0] == 0
    until(lambda: len(found_quotas(client, [], strict=False)[3]) == 4)
    found = []

    def ask(client_id: str, request: Any, version: int) -> Any:
        with connected(client_id) as each:
            answer = each.ask(request, version)
        found.append(answer.throttle_time_ms)
        return answer

    # Kafka's quotas take effect a moment after they can be described.
    until(lambda: ask("busy", DescribeClientQuotasRequest(components=[], strict=False), 1).throttle_time_ms)
    found[:-1] = []
    ask("producer", produce_request("throttled", batch(b"x" * 12_000)), 12)
    for _ in range(2):
        assert ask("consumer", fetch_request("throttled", 0), 11).responses == []
    for name, version in (("first", 7), ("second", 7), ("third", 5)):
        topic = CreateTopicsRequest.Topic(
            name=f"throttled-{name}", num_partitions=4, replication_factor=1, assignments=[], configs=[]
        )
        found.append(ask("admin", CreateTopicsRequest(topics=[topic]), version).topics[0].error_code)
    remove_quotas(client)
    return found


def test_requests_are_throttled_alike(theirs: ReferenceKafka, ours: RunningBroker) -> None:
    with connect(theirs) as client:
        expected = throttled(client, lambda client_id: connect(theirs, client_id))
    with ours.client() as client:
        found = throttled(client, lambda client_id: ours.client(client_id=client_id))
    assert len(found) == len(expected) == 10
    # Between the requests that share a quota, one broker may take longer.
    assert all(abs(our - their) < 1000 for our, their in zip(found, expected, strict=True)), (found, expected)


# -- features


def test_a_kafka_updates_features_as_we_expect(theirs: ReferenceKafka) -> None:
    with connect(theirs) as client:
        feature_requests.check_all(client)
        create_topic(client, "levels", partitions=2)
        feature_requests.check_change_during_transactions(client, "levels")


# -- Kafka's tools


def test_kafkas_tool_shows_and_changes_the_levels_of_features(tools: KafkaTools, ours: RunningBroker) -> None:
    def run(*arguments: str) -> str:
        done = tools.run("features", "--bootstrap-server", "{}:{}".format(*ours.address), *arguments)
        return done.stdout + done.stderr

    shown = "Feature: transaction.version\tSupportedMinVersion: 0\tSupportedMaxVersion: 2\tFinalizedVersionLevel: {}\t"
    assert shown.format(2) in run("describe")
    assert "was downgraded to 1." in run("downgrade", "--feature", "transaction.version=1")
    assert shown.format(1) in run("describe")
    assert "only supports versions 0-2" in run("upgrade", "--feature", "transaction.version=3")
    assert "was upgraded to 1." in run("upgrade", "--feature", "share.version=1")


def test_kafkas_tool_sets_and_shows_quotas_and_configs(tools: KafkaTools, ours: RunningBroker) -> None:
    address = "{}:{}".format(*ours.address)
    with ours.client() as client:
        create_topic(client, "t")

    def run(*arguments: str) -> str:
        done = tools.run("configs", "--bootstrap-server", address, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    alice_app = ("--entity-type", "users", "--entity-name", "alice", "--entity-type", "clients", "--entity-name", "app")
    run("--alter", "--add-config", "producer_byte_rate=1024,request_percentage=50", *alice_app)
    shown = "Quota configs for user-principal 'alice', client-id 'app' are producer_byte_rate=1024.0, request_percentage=50.0"
    assert shown in run("--describe", *alice_app)
    run("--alter", "--delete-config", "producer_byte_rate,request_percentage", *alice_app)
    assert "Quota configs" not in run("--describe", *alice_app)
    run("--alter", "--add-config", "consumer_byte_rate=7", "--entity-type", "users", "--entity-default")
    assert "default user-principal are consumer_byte_rate=7.0" in run("--describe", "--entity-type", "users")

    topic = ("--entity-type", "topics", "--entity-name", "t")
    run("--alter", "--add-config", "cleanup.policy=[compact,delete],retention.ms=77", *topic)
    assert re.search(r"cleanup\.policy=compact,delete .*\n +retention\.ms=77 ", run("--describe", *topic))
    brokers = ("--entity-type", "brokers", "--entity-default")
    run("--alter", "--add-config", "message.max.bytes=900000", *brokers)
    synonyms = "synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:message.max.bytes=900000}"
    assert f"message.max.bytes=900000 sensitive=false {synonyms}" in run("--describe", *brokers)
    metrics = ("--entity-type", "client-metrics", "--entity-name", "m")
    run("--alter", "--add-config", "interval.ms=5000", *metrics)
    assert "interval.ms=5000" in run("--describe", "--entity-type", "client-metrics")
