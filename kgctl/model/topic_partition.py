"""One partition of one topic, everywhere in kgctl."""

from __future__ import annotations

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """Prints as Kafka prints it: orders-0."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
