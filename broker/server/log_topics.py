"""LogTopics: the topics of the log, as the group coordinator uses them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.protocol.acls import Operation, ResourceType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.server.access import Authorizer
    from broker.storage import Log


class LogTopics:
    def __init__(self, log: Log, rack: str | None, authorizer: Authorizer | None) -> None:
        """`rack` is that of this broker, which has all replicas. Without an authorizer, every client sees all topics."""
        self._topics = log.topics
        self._racks = frozenset(() if rack is None else (rack,))
        self._authorizer = authorizer

    @property
    def version(self) -> int:
        return self._topics.version

    @property
    def created(self) -> int:
        return self._topics.created

    def partition_count(self, topic: str) -> int | None:
        found = self._topics.get(topic)
        return None if found is None else found.partition_count

    def topic_id(self, topic: str) -> bytes | None:
        found = self._topics.get(topic)
        return None if found is None else found.topic_id

    def topic_name(self, topic_id: bytes) -> str | None:
        found = self._topics.by_id(topic_id)
        return None if found is None else found.name

    def visible_names(self, principal: str, client_host: str) -> Iterable[str]:
        authorizer = self._authorizer
        if authorizer is None:
            return list(self._topics)
        host = client_host.lstrip("/")
        return [
            name
            for name in self._topics
            if authorizer.authorize(principal, host, Operation.DESCRIBE, ResourceType.TOPIC, name)
        ]

    def racks(self, topic_id: bytes, partition: int) -> frozenset[str]:
        return self._racks

    def common_racks(self, topic_id: bytes) -> frozenset[str] | None:
        return self._racks
