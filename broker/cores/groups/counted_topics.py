"""A catalog of topics for simulations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b


class CountedTopics:
    """Topics by name and partition count, with ids that follow from the names.

    `changes` counts their changes.
    """

    changes = 0

    def counts(self) -> Mapping[str, int]:
        return {}

    def partition_count(self, topic: str) -> int | None:
        return self.counts().get(topic)

    @property
    def version(self) -> int:
        return self.changes

    @property
    def created(self) -> int:
        return self.changes

    def topic_id(self, topic: str) -> bytes | None:
        return None if self.partition_count(topic) is None else blake2b(topic.encode(), digest_size=16).digest()

    def topic_name(self, topic_id: bytes) -> str | None:
        return next((name for name in self.counts() if self.topic_id(name) == topic_id), None)

    def visible_names(self, principal: str, client_host: str) -> Iterable[str]:
        return self.counts()

    def racks(self, topic_id: bytes, partition: int) -> frozenset[str]:
        return frozenset()

    def common_racks(self, topic_id: bytes) -> frozenset[str] | None:
        return frozenset()
