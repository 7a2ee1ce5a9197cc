"""Rows about watched topics: snapshots of a cluster's topics, and what several of them show together with its groups."""

from __future__ import annotations

from collections.abc import Mapping

from broker.light_dataclasses import dataclass, field
from kgctl.model.failure import RowError
from kgctl.model.health import Health
from kgctl.model.lag import Retention
from kgctl.model.topic_partition import TopicPartition
from kgctl.model.topics import TopicPartitionRow, TopicRow


@dataclass(frozen=True, slots=True)
class TopicsSnapshot:
    """All topics of a cluster at one moment: `at_s` of a monotonic clock, `wall_ms` since 1970."""

    at_s: float
    wall_ms: int
    topics: tuple[TopicRow, ...]
    partitions: tuple[TopicPartitionRow, ...]


@dataclass(frozen=True, slots=True)
class TopicStorage:
    """What the logs of topics take and how long they keep records. What is not known is absent.

    `log_bytes` has the size of each log at its leader, `oldest` the timestamp of its first record. `missing` names kinds of
    facts that could not be read, each with the reason.
    """

    wall_ms: int
    log_bytes: Mapping[TopicPartition, int] = field(default_factory=dict)
    oldest: Mapping[TopicPartition, int] = field(default_factory=dict)
    retention: Mapping[str, Retention] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WatchedTopic:
    """One topic in the list of all topics; unknown values are None.

    `offline` counts partitions without a leader, `lacking` those that lack a replica in sync. `readers` are the groups that
    read it, the one that needs attention most first; `health` is that group's verdict.
    """

    topic: str
    internal: bool
    partitions: int
    replicas: int
    records: int | None
    size_bytes: int | None
    rate_in: float | None
    oldest_ms: int | None  # the age of the oldest record
    retention: Retention | None
    offline: int
    lacking: int
    readers: tuple[str, ...]
    health: Health | None
    error: RowError | None = None


@dataclass(frozen=True, slots=True)
class PartitionReader:
    """A group that reads a partition; `member` is what people call the member that owns it."""

    group: str
    member: str | None
    committed: int | None
    lag: int | None


@dataclass(frozen=True, slots=True)
class WatchedTopicPartition:
    """One partition of a topic. `readers` come with the largest lag first."""

    topic: str
    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    start: int | None
    end: int | None
    size_bytes: int | None
    rate_in: float | None
    readers: tuple[PartitionReader, ...]
    error: RowError | None = None


@dataclass(frozen=True, slots=True)
class TopicReader:
    """A group that reads a topic: how far it is behind there, and when retention may delete records that it has not read.

    `behind_ms` and `headroom_ms` are estimates: they suppose that records arrived evenly.
    """

    group: str
    health: Health | None
    members: int | None
    lag: int | None
    behind_ms: int | None
    headroom_ms: int | None
    lost: int  # unread records that were deleted
