"""What a client knows about a cluster: leaders, epochs, topics, errors."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.metadata import MetadataResponse
from kgctl.client.net.errors import AuthorizationFailed, BrokerError
from kgctl.client.network.metadata import Metadata
from kgctl.client.network.nodes import Node
from kgctl.client.network.settings import NetworkSettings
from kgctl.model.topic_partition import TopicPartition

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
ID, OTHER_ID = b"\1" * 16, b"\2" * 16
NODES = (Node(1, "host1", 9092, "rack1"), Node(2, "host2", 9092, "rack2"))


def metadata(**settings: int) -> Metadata:
    made = Metadata(NetworkSettings(**settings), random.Random(1), [Node(-1, "seed", 9092)])
    made.want(["orders"])
    return made


def partition(
    number: int, leader: int = 1, epoch: int = 0, error: int = 0, offline: Sequence[int] = ()
) -> MetadataResponse.Partition:
    return MetadataResponse.Partition(
        partition_index=number,
        leader_id=leader,
        leader_epoch=epoch,
        error_code=error,
        replica_nodes=[1, 2],
        isr_nodes=[1],
        offline_replicas=list(offline),
    )


def topic(
    *partitions: MetadataResponse.Partition, name: str = "orders", topic_id: bytes = ID, error: int = 0
) -> MetadataResponse.Topic:
    return MetadataResponse.Topic(name=name, topic_id=topic_id, partitions=list(partitions), error_code=error)


def update(
    about: Metadata, *topics: MetadataResponse.Topic, nodes: Sequence[Node] = NODES, now_ms: int = 1_000_000
) -> None:
    rows = [MetadataResponse.Broker(node_id=n.node_id, host=n.host, port=n.port, rack=n.rack) for n in nodes]
    answer = MetadataResponse(brokers=rows, topics=list(topics), cluster_id="c", controller_id=1)
    about.update(about.ask(now_ms), answer, now_ms)


def epochs(about: Metadata, key: TopicPartition = P0) -> tuple[int | None, int | None]:
    """The epoch of the leader, and the newest one seen."""
    leader = about.leader(key)
    return None if leader is None else leader.epoch, about.epoch_of(key)


# --- leaders and epochs ---


def test_an_answer_has_nodes_leaders_replicas_and_ids() -> None:
    about = metadata()
    assert not about.is_bootstrapped
    update(about, topic(partition(0, leader=1), partition(1, leader=2, epoch=7)))
    assert about.is_bootstrapped
    assert about.leader(P1) == (NODES[1], 7, "rack2")
    assert about.partition_count("orders") == 2
    assert (about.topic_id("orders"), about.topic_name(ID)) == (ID, "orders")
    assert about.replicas(P0) == (1, 2)
    assert (about.cluster_id, about.controller_id) == ("c", 1)
    assert list(about.topics()) == ["orders"]
    assert (
        about.partition_count("payments") is about.topic_id("payments") is about.leader(TopicPartition("x", 0)) is None
    )


def test_a_leader_that_is_no_node_is_no_leader() -> None:
    about = metadata()
    update(about, topic(partition(0, leader=9), partition(1, leader=-1)))
    assert about.leader(P0) is about.leader(P1) is None
    assert about.partition_count("orders") == 2


def test_an_answer_with_an_older_epoch_changes_nothing() -> None:
    about = metadata()
    update(about, topic(partition(0, leader=1, epoch=10)))
    update(about, topic(partition(0, leader=2, epoch=9)))
    assert epochs(about) == (10, 10)
    leader = about.leader(P0)
    assert leader is not None
    assert leader.node.node_id == 1
    update(about, topic(partition(0, leader=2, epoch=10)))
    leader = about.leader(P0)
    assert leader is not None
    assert leader.node.node_id == 2


def test_an_epoch_of_another_answer_makes_the_leader_unknown_until_the_metadata_has_it() -> None:
    about = metadata()
    update(about, topic(partition(0, epoch=10)))
    assert about.due_ms() > 1_001_000
    assert not about.note_epoch(P0, 10)
    assert not about.note_epoch(P0, 9)
    assert about.note_epoch(P0, 12)
    assert about.due_ms() < 1_001_000
    assert epochs(about) == (None, 12)
    update(about, topic(partition(0, epoch=11)))
    assert epochs(about) == (None, 12)
    assert about.due_ms() < 1_001_000  # that broker lags behind
    update(about, topic(partition(0, epoch=12)))
    assert epochs(about) == (12, 12)


def test_an_epoch_of_an_unknown_partition_is_ignored() -> None:
    about = metadata()
    assert not about.note_epoch(P0, 3)
    update(about, topic(partition(0, epoch=-1)))
    assert not about.note_epoch(P0, 3)
    assert epochs(about) == (-1, None)


def test_a_topic_of_the_same_name_with_another_id_begins_again() -> None:
    about = metadata()
    update(about, topic(partition(0, epoch=10)))
    update(about, topic(partition(0, epoch=1), topic_id=OTHER_ID))
    assert epochs(about) == (1, 1)
    assert about.topic_name(ID) is None
    assert about.topic_name(OTHER_ID) == "orders"


def test_a_broker_without_topic_ids_does_not_begin_again() -> None:
    about = metadata()
    update(about, topic(partition(0, epoch=10)))
    update(about, topic(partition(0, epoch=9), topic_id=bytes(16)))
    assert epochs(about) == (10, 10)
    assert about.topic_id("orders") is None


def test_the_epochs_of_a_deleted_topic_are_forgotten() -> None:
    about = metadata()
    update(about, topic(partition(0, epoch=10)))
    update(about, topic(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    assert epochs(about) == (None, None)
    update(about, topic(partition(0, epoch=2)))
    assert epochs(about) == (2, 2)


def test_new_leaders_of_other_answers_are_used_at_once() -> None:
    """KIP-951."""
    about = metadata()
    update(about, topic(partition(0, leader=1, epoch=5), partition(1, leader=1, epoch=5)))
    version = about.version
    third = Node(3, "host3", 9092)
    leaders = {P0: (3, 6), P1: (2, 5), TopicPartition("payments", 0): (1, 1)}
    assert about.note_leaders(leaders, [third]) == {P0}
    assert about.version == version + 1
    assert about.leader(P0) == (third, 6, None)
    assert epochs(about) == (6, 6)
    assert not about.note_leaders({P0: (77, 9)}, [])
    assert about.topic_id("orders") == ID
    update(about, topic(partition(0, leader=1, epoch=5)), nodes=(*NODES, third))
    assert epochs(about) == (6, 6)


def test_an_offline_replica_is_not_online() -> None:
    about = metadata()
    update(about, topic(partition(0, offline=[2]), partition(1)))
    assert about.is_online_replica(P0, 1)
    assert not about.is_online_replica(P0, 2)
    assert about.is_online_replica(P1, 2)
    assert not about.is_online_replica(P0, 3)
    assert not about.is_online_replica(TopicPartition("orders", 9), 1)


# --- what is asked for ---


def asked(about: Metadata, now_ms: int = 1_000_000) -> list[str | None] | None:
    rows = about.ask(now_ms).request.topics
    return None if rows is None else [row.name for row in rows]


def test_only_new_topics_are_asked_for_when_nothing_else_is_due() -> None:
    about = metadata()
    update(about, topic(partition(0)))
    about.want(["payments"])
    assert about.due_ms() == 1_000_000
    assert asked(about) == ["payments"]
    update(about, topic(partition(0), name="payments", topic_id=OTHER_ID))
    assert sorted(about.topics()) == ["orders", "payments"]
    assert about.due_ms() > 1_200_000
    about.request_update()
    assert asked(about) == ["orders", "payments"]


def test_topics_that_are_new_since_the_request_are_asked_for_next() -> None:
    about = metadata()
    question = about.ask(1_000_000)
    about.want(["payments"])
    rows = [MetadataResponse.Broker(node_id=1, host="host1", port=9092)]
    about.update(question, MetadataResponse(brokers=rows, topics=[topic(partition(0))]), 1_000_000)
    assert about.due_ms() == 1_000_000
    assert asked(about) == ["payments"]


def test_a_client_that_wants_all_topics_asks_for_all() -> None:
    about = metadata()
    question = about.ask(1_000_000)
    about.want_all()
    number = about.request_update()
    rows = [MetadataResponse.Broker(node_id=1, host="host1", port=9092)]
    about.update(question, MetadataResponse(brokers=rows, topics=[topic(partition(0))]), 1_000_000)
    assert about.answered < number  # a pattern would match too few topics
    assert about.due_ms() <= 1_000_200
    assert asked(about) is None
    update(about, topic(partition(0)), topic(partition(0), name="payments", topic_id=OTHER_ID))
    assert about.answered >= number
    assert sorted(about.topics()) == ["orders", "payments"]
    about.want_only(["payments"])
    assert list(about.topics()) == ["payments"]
    assert asked(about) == ["payments"]


def test_topics_that_are_not_wanted_are_dropped() -> None:
    about = metadata()
    update(about, topic(partition(0)), topic(partition(0), name="payments", topic_id=OTHER_ID))
    assert list(about.topics()) == ["orders"]
    about.want_only(["payments"])
    assert not about.topics()
    assert about.topic_id("orders") is None


def test_a_topic_that_is_not_used_any_more_is_forgotten() -> None:
    about = metadata(metadata_max_idle_ms=10_000)
    about.use("payments", 1_000_000)
    update(about, topic(partition(0)), topic(partition(0), name="payments", topic_id=OTHER_ID))
    about.request_update()
    assert asked(about, 1_009_999) == ["orders", "payments"]
    about.use("payments", 1_005_000)
    assert asked(about, 1_010_000) == ["orders", "payments"]
    assert asked(about, 1_015_000) == ["orders"]
    assert list(about.topics()) == ["orders"]


# --- errors ---


@pytest.mark.parametrize(
    ("code", "is_asked_again"),
    [
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True),
        (ErrorCode.LEADER_NOT_AVAILABLE, True),
        (ErrorCode.INVALID_TOPIC_EXCEPTION, False),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, False),
    ],
)
def test_an_error_of_a_topic_is_remembered_until_it_is_over(code: ErrorCode, is_asked_again: bool) -> None:
    about = metadata()
    update(about, topic(error=code))
    error = about.error_of("orders")
    assert isinstance(error, BrokerError)
    assert error.code == code
    assert isinstance(error, AuthorizationFailed) == (code == ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert (about.due_ms() < 1_001_000) == is_asked_again
    update(about, topic(partition(0)))
    assert about.error_of("orders") is None
    assert about.error_of("payments") is None


def test_a_partition_without_a_leader_is_asked_for_again() -> None:
    about = metadata()
    update(about, topic(partition(0, leader=-1, error=ErrorCode.LEADER_NOT_AVAILABLE)))
    assert about.due_ms() < 1_001_000
    assert about.leader(P0) is None


# --- listeners ---


def test_listeners_see_each_update() -> None:
    about = metadata()
    seen: list[int] = []
    about.listeners.append(lambda each: seen.append(each.version))
    wanted = about.request_update()
    assert about.version < wanted
    update(about, topic(partition(0)))
    assert seen == [1]
    assert about.version >= wanted
    about.note_leaders({P0: (2, 5)}, [])
    assert seen == [1, 2]
