"""What is known about a cluster: each broker, connected at the address that it advertises; all partitions; permissions."""

from __future__ import annotations

import contextlib
from collections import Counter

from broker.protocol.acls import Operation
from broker.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from broker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from broker.protocol.offsets_topic import TOPIC as OFFSETS_TOPIC
from kgctl.client.admin.lag_facts import newest_times
from kgctl.client.net.cluster import Ask, Cluster, Node
from kgctl.client.net.errors import BrokerError, KgctlError
from kgctl.client.net.steps import Steps
from kgctl.model.cluster import BrokerFacts, ClusterFacts, PartitionFacts
from kgctl.model.failure import RowError
from kgctl.model.topic_partition import TopicPartition

NOT_REPORTED = -(2**31)
# A bootstrap address that hangs takes at most this part of the time limit.
PROBE_SHARE = 6


def cluster_facts(cluster: Cluster, wall_ms: int) -> Steps[ClusterFacts]:
    """The facts, in a few requests. Raises KgctlError if no broker answers."""
    yield from cluster.metadata([])
    nodes = yield from cluster.all_nodes()
    brokers = yield from _brokers(cluster, nodes)
    request = MetadataRequest(topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=True)
    answer = yield from cluster.ask_any(request, MetadataResponse, min_version=4)
    partitions = tuple(
        PartitionFacts(
            TopicPartition(topic.name or "", row.partition_index),
            topic.is_internal,
            None if row.leader_id < 0 else row.leader_id,
            tuple(row.replica_nodes),
            tuple(row.isr_nodes),
        )
        for topic in sorted(answer.topics, key=lambda topic: topic.name or "")
        for row in sorted(topic.partitions, key=lambda row: row.partition_index)
    )
    counts: Counter[str] = Counter()
    for topic in answer.topics:
        counts.update(_names(topic.topic_authorized_operations) or ())
    times: dict[TopicPartition, int] = {}
    with contextlib.suppress(KgctlError):
        offsets = [one.partition for one in partitions if one.partition.topic == OFFSETS_TOPIC]
        times = yield from newest_times(cluster, offsets)
    return ClusterFacts(
        wall_ms,
        tuple(map(str, cluster.bootstrap)),
        None if answer.controller_id < 0 else answer.controller_id,
        brokers,
        partitions,
        len(answer.topics),
        (yield from _operations(cluster)),
        dict(counts),
        max(times.values(), default=None),
        (yield from _silent(cluster, nodes)),
    )


def _silent(cluster: Cluster, nodes: list[Node]) -> Steps[dict[str, RowError]]:
    """The bootstrap addresses that do not answer, all asked at the same time, within a share of the time that is left."""
    known = {node.endpoint for node in nodes}
    request = MetadataRequest(topics=[], allow_auto_topic_creation=False)
    asks = [
        Ask(endpoint, request, MetadataResponse, 4, candidates=PROBE_SHARE)
        for endpoint in cluster.bootstrap
        if endpoint not in known
    ]
    answers = (yield from cluster.ask_each(asks)) if asks else []
    return {
        str(ask.endpoint): answer.as_row()
        for ask, answer in zip(asks, answers, strict=True)
        if isinstance(answer, KgctlError)
    }


def _brokers(cluster: Cluster, nodes: list[Node]) -> Steps[tuple[BrokerFacts, ...]]:
    """Ask each broker at its own address, all at the same time."""
    request = MetadataRequest(topics=[], allow_auto_topic_creation=False)
    asks = [Ask(node.endpoint, request, MetadataResponse, 4) for node in nodes]
    answers = yield from cluster.ask_each(asks)
    found = []
    for node, answer in zip(nodes, answers, strict=True):
        address = str(node.endpoint)
        if isinstance(answer, KgctlError):
            found.append(BrokerFacts(node.node_id, address, error=answer.as_row()))
            continue
        known = frozenset(row.node_id for row in answer.brokers)
        apis, features = cluster.offers(node.endpoint)
        found.append(BrokerFacts(node.node_id, address, answer.cluster_id, known, apis, features))
    return tuple(found)


def _operations(cluster: Cluster) -> Steps[tuple[str, ...] | None]:
    try:
        request = DescribeClusterRequest(include_cluster_authorized_operations=True)
        answer = yield from cluster.ask_any(request, DescribeClusterResponse)
        if answer.error_code:
            raise BrokerError(answer.error_code, "the cluster", answer.error_message)
    except KgctlError:
        return None
    return _names(answer.cluster_authorized_operations)


def _names(bits: int) -> tuple[str, ...] | None:
    if bits == NOT_REPORTED:
        return None
    known = [operation for operation in Operation if operation > Operation.ALL and bits >> operation & 1]
    return tuple("".join(word.capitalize() for word in operation.name.split("_")) for operation in known)
