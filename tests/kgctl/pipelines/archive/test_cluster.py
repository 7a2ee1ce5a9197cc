"""Tests of what an archive asks a cluster."""

from __future__ import annotations

import threading

import pytest

from kgctl import Producer
from kgctl.client.net import bootstrap
from kgctl.client.net.connector import ConnectionSettings
from kgctl.client.net.errors import NotFound
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.archive.cluster import ArchivedCluster
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl
from tests.kgctl.pipelines.source.topics import Topics

_YEAR_10000_MS = 253_402_300_800_000


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


def test_a_next_record_without_a_usable_time_is_not_the_end_of_the_log(our_cluster: Cluster) -> None:
    topics, group = Topics(our_cluster.bootstrap_servers), fresh("g")
    name = topics.make(2, retention_ms="-1", message_timestamp_after_max_ms=str(2**63 - 1))
    with Producer(bootstrap_servers=our_cluster.bootstrap_servers) as producer:
        for number, time_ms in [(0, 1000), (0, _YEAR_10000_MS), (1, 3000)]:
            producer.send(name, b"v", partition=number, timestamp_ms=time_ms)
        producer.flush(20)
    Kgctl(our_cluster.bootstrap_servers).commit(group, name, p0=1, p1=1)
    connection = ConnectionSettings(bootstrap.parse(our_cluster.bootstrap_servers))
    with ArchivedCluster(connection, committed_only=True, stop=threading.Event()) as asked:
        found = asked.groups([name]).offsets
    assert [(one.group, one.offset, one.timestamp_ms, one.log_start, one.log_end, one.type) for one in found] == [
        (group, 1, None, 0, 2, "Classic"),
        (group, 1, None, 0, 1, "Classic"),
    ]
