"""Hashes of topics that Kafka's coordinator has computed, recorded by tests/harness/java/MetadataHashVectors.java."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from broker.cores.groups.counted_topics import CountedTopics
from tests.broker.cores.groups.assignors.vectors import topic_id


@dataclass
class Topics(CountedTopics):
    """Topics with their ids, and the racks of each of their partitions; the hash that Kafka gave them."""

    ids: dict[str, bytes]
    placed: dict[bytes, list[frozenset[str]]]
    expected: int

    def counts(self) -> dict[str, int]:
        return {name: len(self.placed[found]) for name, found in self.ids.items()}

    def topic_id(self, topic: str) -> bytes | None:
        return self.ids.get(topic)

    def racks(self, topic_id: bytes, partition: int) -> frozenset[str]:
        return self.placed[topic_id][partition]

    def common_racks(self, topic_id: bytes) -> frozenset[str] | None:
        found = set(self.placed[topic_id])
        return found.pop() if len(found) == 1 else None


def read(lines: Iterable[str]) -> Iterator[Topics]:
    for line in lines:
        row = json.loads(line)
        racks = row["racks"]
        ids = {name: topic_id(text) for name, text, _ in row["topics"]}
        placed = {
            ids[name]: [frozenset(racks[broker] for broker in brokers if racks[broker] is not None) for brokers in rows]
            for name, _, rows in row["topics"]
        }
        yield Topics(ids, placed, int(row["hash"]))
