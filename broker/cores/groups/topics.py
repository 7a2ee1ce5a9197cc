"""The topics of the broker, as far as the group coordinator needs to know them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Protocol


class TopicCatalog(Protocol):
    """Groups of the newer protocol name topics by id; a topic that is created again has another one."""

    @property
    def version(self) -> int:
        """Changes whenever a topic is created or deleted, or gets more partitions."""
        ...

    @property
    def created(self) -> int:
        """The version when the last topic was created."""
        ...

    def partition_count(self, topic: str) -> int | None:
        """The number of partitions; None if the topic does not exist."""
        ...

    def topic_id(self, topic: str) -> bytes | None: ...

    def topic_name(self, topic_id: bytes) -> str | None: ...

    def visible_names(self, principal: str, client_host: str) -> Iterable[str]:
        """The topics that a client may describe."""
        ...

    def racks(self, topic_id: bytes, partition: int) -> frozenset[str]:
        """The racks of the replicas of a partition, as far as they are known."""
        ...

    def common_racks(self, topic_id: bytes) -> frozenset[str] | None:
        """The racks of each partition of the topic; None if not all partitions have the same."""
        ...


def named_partitions(
    owned: Mapping[bytes, Collection[int]], catalog: TopicCatalog
) -> Iterator[tuple[bytes, str, list[int]]]:
    """The id, name and partitions of each topic; without topics that have been deleted."""
    for topic_id, partitions in owned.items():
        name = catalog.topic_name(topic_id)
        if name is not None:
            yield topic_id, name, sorted(partitions)
