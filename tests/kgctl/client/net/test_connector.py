"""Every connection of a client carries the settings of its connector."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from broker.local import LocalBroker
from broker.protocol.messages.fetch import FetchResponse
from broker.protocol.messages.init_producer_id import InitProducerIdResponse
from broker.protocol.messages.list_offsets import ListOffsetsResponse
from broker.protocol.messages.produce import ProduceResponse
from broker.protocol.record_batch import Record, build_batch
from kgctl.client.admin.admin import Admin
from kgctl.client.consumer.consumer import Consumer
from kgctl.client.consumer.fetching.options import FetchOptions
from kgctl.client.consumer.reset_strategy import EARLIEST
from kgctl.client.consumer.settings import ConsumerSettings
from kgctl.client.net.connector import ConnectionSettings, Connector
from kgctl.client.network.settings import NetworkSettings
from kgctl.client.producer.producer import Producer
from kgctl.client.producer.shared_face import Plugins, ProducerSettings
from tests.harness.feeding import API_VERSIONS, METADATA
from tests.harness.scripted_node import ScriptedNode, one_partition

PRODUCE, FETCH, LIST_OFFSETS, INIT_PRODUCER_ID = 0, 1, 2, 22


@pytest.fixture
def node() -> ScriptedNode:
    partition = ProduceResponse.Partition(index=0, base_offset=0)
    offsets = ListOffsetsResponse.Partition(partition_index=0, offset=0, timestamp=-1)
    records = build_batch([Record(0, 1, None, b"value")])
    fetched = FetchResponse.Partition(partition_index=0, high_watermark=1, last_stable_offset=1, records=records)
    return ScriptedNode(
        {
            INIT_PRODUCER_ID: lambda _: InitProducerIdResponse(producer_id=7, producer_epoch=0),
            PRODUCE: lambda _: ProduceResponse(
                responses=[ProduceResponse.Topic(name="orders", partition_responses=[partition])]
            ),
            LIST_OFFSETS: lambda _: ListOffsetsResponse(
                topics=[ListOffsetsResponse.Topic(name="orders", partitions=[offsets])]
            ),
            FETCH: lambda _: FetchResponse(responses=[FetchResponse.Topic(topic="orders", partitions=[fetched])]),
        }
    )


@contextlib.contextmanager
def connected(node: ScriptedNode, client_id: str = "billing") -> Iterator[Connector]:
    with node.listening() as endpoint:
        one_partition(node, endpoint, "orders")
        with Connector(ConnectionSettings((endpoint,), client_id, timeout=10)) as connector:
            yield connector


def requests(node: ScriptedNode) -> set[tuple[int, str | None]]:
    return {(request.api_key, request.client_id) for request in node.received}


def test_every_request_of_a_producer_carries_the_client_id(node: ScriptedNode) -> None:
    with connected(node) as connector:
        settings = ProducerSettings(network=NetworkSettings(client_id="billing"))
        with Producer.connect(connector.settings, settings, Plugins()) as producer:
            producer.send("orders", b"value")
            producer.flush(10)
    assert requests(node) == {(key, "billing") for key in (API_VERSIONS, METADATA, INIT_PRODUCER_ID, PRODUCE)}


def test_every_request_of_a_consumer_carries_the_client_id(node: ScriptedNode) -> None:
    with connected(node) as connector:
        settings = ConsumerSettings(NetworkSettings(client_id="billing"), FetchOptions(), None, EARLIEST)
        with Consumer.connect(connector.settings, settings) as consumer:
            consumer.assign([("orders", 0)])
            while not consumer.poll(10):
                pass
    assert requests(node) == {(key, "billing") for key in (API_VERSIONS, METADATA, LIST_OFFSETS, FETCH)}


def test_every_request_of_an_admin_carries_the_client_id(node: ScriptedNode) -> None:
    with connected(node) as connector, Admin(connector.settings) as admin:
        assert [row.topic for row in admin.list_topics()] == ["orders"]
    assert requests(node) == {(key, "billing") for key in (API_VERSIONS, METADATA)}


def test_a_connection_that_ended_while_it_was_idle_is_replaced_before_the_next_request() -> None:
    with LocalBroker() as broker, Admin(bootstrap_servers=broker.bootstrap_servers) as admin:
        assert admin.list_groups().groups == ()
        broker.restart()
        assert admin.list_groups().groups == ()
