"""Rebalances that Kafka's assignors have computed, recorded by tests/harness/java/AssignorVectors.java."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kgctl.client.consumer.assignors.assignor import Assignment, ClusterView, Subscription
from kgctl.model.topic_partition import TopicPartition


@dataclass
class Vector:
    """One rebalance: what the leader knew, and each member's partitions as text, topic by topic."""

    assignor: str
    cluster: ClusterView
    members: dict[str, Subscription]
    assigned: dict[str, str]


def read(lines: Iterable[str]) -> Iterator[Vector]:
    for line in lines:
        row = json.loads(line)
        racks = {topic: text.split() for topic, text in row["topics"].items()}
        cluster = ClusterView(
            {topic: len(parts) for topic, parts in racks.items()},
            {
                TopicPartition(topic, number): {f"r{one}" for one in numbers}
                for topic, parts in racks.items()
                for number, numbers in enumerate(parts)
            },
        )
        members = dict(_member(*columns) for columns in row["members"])
        assigned = {member: as_text(partitions(text)) for member, text in row["assigned"].items()}
        yield Vector(row["assignor"], cluster, members, assigned)


def _member(
    member_id: str, topics: str, user_data: str | None, owned: str, generation: int, rack: str | None, instance: Any
) -> tuple[str, Subscription]:
    data = None if user_data is None else base64.b64decode(user_data)
    return member_id, Subscription(topics.split(), data, partitions(owned), generation, rack, instance)


def partitions(text: str) -> list[TopicPartition]:
    return [TopicPartition(word[0], int(word[1:])) for word in text.split()]


def as_text(given: Iterable[TopicPartition]) -> str:
    """Partitions as the wire has them: grouped by topic. The order of topics, which Java leaves to a hash, does not count."""
    return " ".join(f"{topic}{number}" for topic, number in sorted(given, key=lambda one: one.topic))


def as_texts(assigned: Mapping[str, Assignment]) -> dict[str, str]:
    return {member_id: as_text(one.partitions) for member_id, one in assigned.items()}
