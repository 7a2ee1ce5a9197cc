"""When the metadata is asked for, and how a client finds the cluster again."""

from __future__ import annotations

import pytest

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kgctl.client.net.errors import Unsupported
from kgctl.client.net.steps import Endpoint
from kgctl.client.network.nodes import Node
from kgctl.client.network.settings import NetworkSettings
from kgctl.model.topic_partition import TopicPartition
from tests.harness.client_script import SEED, Script
from tests.kgctl.client.network.requests import connected, error_in, send_any


def started(script: Script) -> Script:
    script.turn()
    assert script.network.metadata.is_bootstrapped
    return script


def asks(script: Script) -> int:
    return len(script.sent(MetadataRequest))


def test_the_metadata_is_asked_for_again_when_it_is_old() -> None:
    script = started(Script(settings=NetworkSettings(metadata_max_age_ms=10_000)))
    assert asks(script) == 1
    script.sleep(9_999)
    assert asks(script) == 1
    script.sleep(1)
    assert asks(script) == 2


def test_the_answer_to_an_update_brings_new_partitions() -> None:
    script = Script(partitions={"orders": 1}, settings=NetworkSettings(metadata_max_age_ms=10_000))
    script.network.metadata.want(["orders"])
    started(script)
    assert script.network.metadata.partition_count("orders") == 1
    script.partitions["orders"] = 3
    script.sleep(10_000)
    assert script.network.metadata.partition_count("orders") == 3
    assert script.network.metadata.leader(TopicPartition("orders", 2)) is not None


def test_updates_keep_a_distance_that_grows_while_the_answers_are_the_same() -> None:
    script = started(Script())
    times = []
    while len(times) < 6:
        before = asks(script)
        script.network.metadata.request_update()
        began = script.now_ms
        while asks(script) == before:
            script.sleep(1)
        times.append(script.now_ms - began)
    for took, expected in zip(times, [100, 100, 200, 400, 800, 1000], strict=True):
        assert expected * 0.8 <= took <= expected * 1.2 + 1


def test_a_new_topic_is_asked_for_at_once() -> None:
    script = started(Script(partitions={"orders": 1}))
    for _ in range(5):
        script.network.metadata.request_update()
        script.sleep(2000)
    script.network.metadata.want(["orders"])
    script.turn()
    assert script.network.metadata.partition_count("orders") == 1


def test_failed_updates_are_repeated_with_backoff() -> None:
    script = Script(answers={MetadataRequest: lambda request: MetadataResponse(brokers=[], topics=[])})
    script.turn()
    assert asks(script) == 1
    script.sleep(79)
    assert asks(script) == 1
    script.sleep(41)
    assert asks(script) == 2
    script.sleep(159)
    assert asks(script) == 2
    script.sleep(81)
    assert asks(script) == 3
    assert not script.network.metadata.is_bootstrapped


def test_one_update_is_under_way_at_a_time() -> None:
    script = Script(answers={MetadataRequest: None})
    script.turn()
    script.network.metadata.request_update()
    script.network.metadata.want(["orders"])
    script.sleep(10_000)
    assert asks(script) == 1


def test_a_lost_connection_makes_the_metadata_old() -> None:
    script = connected(Script(node_count=2), 1, 2)
    before = asks(script)
    script.break_node(script.endpoint(1))
    script.sleep(200)
    assert asks(script) == before + 1


def test_a_broker_that_cannot_be_asked_is_an_error_for_the_program() -> None:
    script = Script(offered={18: (0, 4), 3: (0, 0)})
    script.turn()
    with pytest.raises(Unsupported):
        script.network.metadata.take_error()


def test_no_topics_are_created_by_a_client_that_must_not() -> None:
    script = Script(settings=NetworkSettings(allow_auto_create_topics=False), offered={18: (0, 4), 3: (0, 3)})
    script.turn()
    with pytest.raises(Unsupported):
        script.network.metadata.take_error()
    assert not asks(script)


# --- bootstrap again (KIP-899, KIP-1102) ---


def moved(script: Script) -> Script:
    """The cluster has other addresses: only the bootstrap list still leads to it."""
    for node in script.nodes.values():
        script.down.add(node.endpoint)
        script.break_node(node.endpoint)
    script.break_node(SEED)
    script.nodes = {number: Node(number, f"new{number}", 9092) for number in script.nodes}
    return script


def test_a_client_begins_again_when_no_node_can_be_reached() -> None:
    script = moved(connected(Script(node_count=2), 1, 2))
    script.sleep(2_000)
    assert sorted(node.host for node in script.network.metadata.nodes().values()) == ["new1", "new2"]
    connected(script, 1, 2)


def test_a_client_that_must_not_begin_again_keeps_trying_the_nodes_it_knows() -> None:
    script = moved(connected(Script(node_count=2, settings=NetworkSettings(metadata_recovery_strategy="none")), 1, 2))
    script.sleep(20_000)
    assert sorted(node.host for node in script.network.metadata.nodes().values()) == ["host1", "host2"]
    assert not [each for each in script.connects()[3:] if each.endpoint == SEED]


def test_a_client_begins_again_when_no_node_answers_for_long() -> None:
    settings = NetworkSettings(metadata_recovery_rebootstrap_trigger_ms=60_000, request_timeout_ms=5_000)
    script = started(Script(settings=settings, bootstrap=(SEED, Endpoint("spare", 9092))))
    connected(script, 1)
    script.answers[MetadataRequest] = lambda request: script.metadata(request) if request.endpoint == SEED else None
    script.nodes = {1: Node(1, "new1", 9092)}
    script.break_node(SEED)
    script.network.metadata.request_update()
    script.sleep(30_000)
    assert script.network.metadata.nodes()[1].host == "host1"
    script.sleep(90_000)
    assert script.network.metadata.nodes()[1].host == "new1"


def test_a_broker_can_make_a_client_begin_again() -> None:
    script = connected(Script(), 1)
    script.answers[MetadataRequest] = lambda request: MetadataResponse(
        brokers=[], topics=[], error_code=ErrorCode.REBOOTSTRAP_REQUIRED
    )
    script.network.metadata.request_update()
    script.sleep(1000)
    del script.answers[MetadataRequest]
    assert not script.network.metadata.is_bootstrapped
    script.sleep(1000)
    assert script.network.metadata.is_bootstrapped


def test_without_any_node_a_client_neither_spins_nor_gives_up() -> None:
    script = Script(bootstrap=(SEED, Endpoint("other", 9092)), down={SEED, Endpoint("other", 9092)})
    answers = send_any(script)
    script.sleep(29_999)
    assert not answers
    assert 40 < len(script.connects()) < 150
    script.sleep(1)
    assert "connection refused" in str(error_in(answers))
    script.down.clear()
    script.sleep(2000)
    assert script.network.metadata.is_bootstrapped
