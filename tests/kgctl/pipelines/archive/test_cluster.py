"""Tests of what an archive asks a cluster."""

from __future__ import annotations

import threading

import pytest

from kgctl.client.net import bootstrap
from kgctl.client.net.connector import ConnectionSettings
from kgctl.client.net.errors import NotFound
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.archive.cluster import ArchivedCluster
from tests.harness.clusters import Cluster
from tests.kgctl.pipelines.source.topics import Topics


def test_topics_logs_and_leader_epochs(cluster: Cluster) -> None:
    topics = Topics(cluster.bootstrap_servers)
    name = topics.make(2, retention_ms="-1")
    topics.count(name, 7, 2)
    zero, one = TopicPartition(name, 0), TopicPartition(name, 1)
    connection = ConnectionSettings(bootstrap.parse(cluster.bootstrap_servers))
    with ArchivedCluster(connection, committed_only=True, stop=threading.Event()) as asked:
        (facts,) = asked.topics([name])
        assert (facts.name, facts.partitions, facts.replication_factor, len(facts.id)) == (name, 2, 1, 36)
        assert facts.configs["retention.ms"] == "-1"
        logs = asked.logs([zero, one])
        assert {place: (log.start, log.end) for place, log in logs.items()} == {zero: (0, 4), one: (0, 3)}
        assert asked.epoch_ends({place: log.leader_epoch for place, log in logs.items()}) == {zero: 4, one: 3}
        assert asked.at_time([zero, one], 2**50, logs) == {zero: 4, one: 3}
        assert asked.at_time([zero, one], 0, logs) == {zero: 0, one: 0}
        assert name in asked.all_topics()
        assert not any(topic.startswith("__") for topic in asked.all_topics())
        with pytest.raises(NotFound, match="topic 'nothing' does not exist"):
            asked.topics(["nothing"])
