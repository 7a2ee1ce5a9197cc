"""The topics of a world, which are created, get partitions and are deleted while groups use them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b


class WorldTopics:
    """A TopicCatalog. A topic that is created again has another id."""

    def __init__(self) -> None:
        self.version = self.created = 0
        self._made = 0
        self._topics: dict[str, tuple[bytes, int]] = {}
        self._names: dict[bytes, str] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._topics

    def __iter__(self) -> Iterator[str]:
        return iter(self._topics)

    # ---- changes -------------------------------------------------------------------------------------------------

    def create(self, name: str, partitions: int) -> None:
        self._made += 1
        topic_id = blake2b(f"{name} {self._made}".encode(), digest_size=16).digest()
        self._topics[name] = topic_id, partitions
        self._names[topic_id] = name
        self.version += 1
        self.created = self.version

    def grow(self, name: str) -> None:
        topic_id, partitions = self._topics[name]
        self._topics[name] = topic_id, partitions + 1
        self.version += 1

    def delete(self, name: str) -> None:
        topic_id, _ = self._topics.pop(name)
        del self._names[topic_id]
        self.version += 1

    def restarted(self) -> None:
        """A broker counts from its start, at which it finds all topics."""
        self.version = self.created = len(self._topics)

    # ---- the interface of the coordinator ------------------------------------------------------------------------

    def partition_count(self, topic: str) -> int | None:
        found = self._topics.get(topic)
        return None if found is None else found[1]

    def topic_id(self, topic: str) -> bytes | None:
        found = self._topics.get(topic)
        return None if found is None else found[0]

    def topic_name(self, topic_id: bytes) -> str | None:
        return self._names.get(topic_id)

    def visible_names(self, principal: str, client_host: str) -> Iterable[str]:
        return list(self._topics)

    def racks(self, topic_id: bytes, partition: int) -> frozenset[str]:
        return frozenset()

    def common_racks(self, topic_id: bytes) -> frozenset[str] | None:
        return frozenset()
