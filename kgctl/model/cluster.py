"""What is known about a cluster as a whole."""

from __future__ import annotations

from collections.abc import Mapping

from broker.light_dataclasses import dataclass, field
from kgctl.model.failure import RowError
from kgctl.model.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class BrokerFacts:
    """A broker as the cluster advertises it, and what it answers there.

    `apis` has the versions that it offers by API key, `features` the finalized levels. `error`: why it did not answer; the
    rest is then not known.
    """

    broker_id: int
    address: str
    cluster_id: str | None = None
    known_brokers: frozenset[int] = frozenset()
    apis: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    features: Mapping[str, int] = field(default_factory=dict)
    error: RowError | None = None


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    partition: TopicPartition
    is_internal: bool
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """`operations` are those that the principal may execute on the cluster, None if it may not know them.

    `topic_operations` counts the topics for each operation. `newest_commit_ms` is the latest time in __consumer_offsets, by
    the clocks of the brokers. `silent` has the bootstrap addresses that are no advertised address and do not answer.
    """

    wall_ms: int
    bootstrap: tuple[str, ...]
    controller_id: int | None
    brokers: tuple[BrokerFacts, ...]
    partitions: tuple[PartitionFacts, ...] = ()
    topics: int = 0
    operations: tuple[str, ...] | None = None
    topic_operations: Mapping[str, int] = field(default_factory=dict)
    newest_commit_ms: int | None = None
    silent: Mapping[str, RowError] = field(default_factory=dict)
