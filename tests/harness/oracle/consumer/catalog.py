"""The topics of a walk that is played on the coordinator alone."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

# Buckets of topic ids in the order in which topics are created: in order in tables of 4, 8 and 16 buckets.
PLACES = (0, 1, 2, 3, 7, 15)


class Catalog:
    """The topics of a walk. Their ids have the order in which they are created."""

    def __init__(self, names: dict[str, str], counts: dict[str, int]) -> None:
        self.version = self.created = 0
        self._new_ids = itertools.count()
        self.counts: dict[str, int] = {}
        self.ids: dict[str, bytes] = {}
        for symbol, count in counts.items():
            if count:
                self.create(names[symbol], count)

    def create(self, topic: str, count: int) -> None:
        self.version += 1
        self.created = self.version
        self.counts[topic], self.ids[topic] = count, _topic_id(next(self._new_ids))

    def grow(self, topic: str, count: int) -> None:
        self.version += 1
        self.counts[topic] = count

    def delete(self, topic: str) -> None:
        self.version += 1
        del self.counts[topic], self.ids[topic]

    # ---- what the coordinator asks

    def partition_count(self, topic: str) -> int | None:
        return self.counts.get(topic)

    def topic_id(self, topic: str) -> bytes | None:
        return self.ids.get(topic)

    def topic_name(self, topic_id: bytes) -> str | None:
        return next((name for name, found in self.ids.items() if found == topic_id), None)

    def visible_names(self, principal: str, client_host: str) -> Iterable[str]:
        return list(self.ids)

    def racks(self, topic_id: bytes, partition: int) -> frozenset[str]:
        return frozenset()

    def common_racks(self, topic_id: bytes) -> frozenset[str] | None:
        return frozenset()


def _topic_id(number: int) -> bytes:
    high = number + 1
    return high.to_bytes(8, "big") + (high ^ PLACES[number]).to_bytes(8, "big")
