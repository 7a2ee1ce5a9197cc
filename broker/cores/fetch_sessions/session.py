"""A fetch session: its partitions with what the client last asked for and what it was last answered."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from broker.protocol.messages.fetch import FetchRequest

# The epochs of full fetches: one that may begin a session, and one that does not.
INITIAL_EPOCH, FINAL_EPOCH = 0, -1
NO_SESSION = 0
LAST_EPOCH = 2**31 - 1
# Longer names of topics are not valid; those of a session stay in memory.
LONGEST_NAME = 249
UNKNOWN = -1

# Topic name or topic id, and the index of the partition.
Key = tuple[str | bytes, int]


class AskedTopic(Protocol):
    """The topic of a request, or of a session. `topic` is its name once that is known."""

    topic: str
    topic_id: bytes


class AskedPartition(Protocol):
    """What a client asks of a partition, in a request or in a session."""

    partition: int
    fetch_offset: int
    current_leader_epoch: int
    partition_max_bytes: int


class CachedTopic:
    """An AskedTopic that stays."""

    __slots__ = ("topic", "topic_id")

    def __init__(self, asked: AskedTopic) -> None:
        self.topic = asked.topic
        self.topic_id = asked.topic_id


class CachedPartition:
    """An AskedPartition that stays, with the ends of the log in the last answer."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "high_watermark",
        "log_start_offset",
        "partition",
        "partition_max_bytes",
        "topic",
    )

    def __init__(
        self, topic: CachedTopic, asked: AskedPartition, high_watermark: int = UNKNOWN, log_start_offset: int = UNKNOWN
    ) -> None:
        self.topic = topic
        self.partition = asked.partition
        self.high_watermark = high_watermark
        self.log_start_offset = log_start_offset
        self.ask(asked)

    def ask(self, asked: AskedPartition) -> None:
        """Take what a request asks for."""
        self.fetch_offset = asked.fetch_offset
        self.current_leader_epoch = asked.current_leader_epoch
        self.partition_max_bytes = asked.partition_max_bytes


class FetchSession:
    """The partitions of one consumer, in the order in which they are read: those that had records come last.

    `epoch` is that of the next request. `owner` is the principal that may use the session.
    """

    __slots__ = ("by_id", "created_ms", "epoch", "evictable_as", "id", "owner", "partitions", "size", "used_ms")

    def __init__(self, session_id: int, owner: str, *, by_id: bool, created_ms: int) -> None:
        self.id = session_id
        self.owner = owner
        self.by_id = by_id
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.created_ms = self.used_ms = created_ms
        self.partitions: dict[Key, CachedPartition] = {}
        # Of the cache: the partitions that it has counted, and the entry among those that may be evicted.
        self.size = 0
        self.evictable_as: tuple[int, int] | None = None

    def key(self, topic: AskedTopic, index: int) -> Key:
        return topic.topic_id if self.by_id else topic.topic, index

    def growth(self, request: FetchRequest) -> int:
        """How many partitions the request would add, before it forgets any."""
        return sum(
            self.key(topic, asked.partition) not in self.partitions
            for topic in request.topics
            for asked in topic.partitions
        )

    def update(self, request: FetchRequest) -> None:
        """Add, change and forget partitions as an incremental fetch asks."""
        for topic in request.topics:
            added: CachedTopic | None = None
            for asked in topic.partitions:
                key = self.key(topic, asked.partition)
                cached = self.partitions.get(key)
                if cached is not None:
                    cached.ask(asked)
                    continue
                added = added or CachedTopic(topic)
                self.partitions[key] = CachedPartition(added, asked)
        for forgotten in request.forgotten_topics_data:
            for index in forgotten.partitions:
                self.partitions.pop(self.key(forgotten, index), None)

    def move_to_end(self, cached: CachedPartition) -> None:
        key = self.key(cached.topic, cached.partition)
        if self.partitions.pop(key, None) is not None:
            self.partitions[key] = cached


def next_epoch(epoch: int) -> int:
    return 1 if epoch == LAST_EPOCH else epoch + 1


def has_valid_names(topics: Iterable[AskedTopic]) -> bool:
    return all(len(topic.topic) <= LONGEST_NAME for topic in topics)
