"""A consumer on a running broker."""

from __future__ import annotations

from kgctl.client.admin.admin import Admin
from kgctl.client.consumer.consumer import Consumer, ConsumerSettings
from kgctl.client.consumer.membership import GroupSettings
from kgctl.client.net.bootstrap import parse
from kgctl.client.net.connector import ConnectionSettings, Connector
from kgctl.model.topic_partition import TopicPartition
from tests.harness.clusters import Cluster, fresh


def test_the_commit_interval_is_that_of_the_settings(our_cluster: Cluster) -> None:
    topic, group = fresh("topic"), fresh("interval")
    partition = TopicPartition(topic, 0)
    connection = ConnectionSettings(parse(our_cluster.bootstrap_servers))
    settings = ConsumerSettings(group=GroupSettings(group), commit_interval_seconds=0.0)
    with Connector(connection) as connector, Admin(connection) as admin:
        admin.create_topics([topic], partitions=1)
        consumer = Consumer(connector, settings, print)
        consumer.subscribe([topic], 10)
        while not consumer.assignment:
            consumer.poll(10)
        for offset in (1, 2):
            consumer.mark_used(partition, offset)
            consumer.heartbeat()
            committed = admin.committed([group])[group]
            assert isinstance(committed, dict)
            assert committed[partition].offset == offset
        consumer.close()
