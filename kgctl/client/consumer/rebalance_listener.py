"""What an application does when the partitions of its consumer change."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from kgctl.model.topic_partition import TopicPartition


class RebalanceListener:
    """A base class: override what you need. `poll`, `unsubscribe` and `close` call it, in the thread that calls them."""

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        """Partitions are about to go to other members; offsets can still be committed."""

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        """Partitions were added. Called after each rebalance, also with no partitions."""

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        """The membership ended: other members may have the partitions already, and commits fail."""
        self.on_partitions_revoked(partitions)


class HeldListener(RebalanceListener):
    """The listener that `holder` returns now.

    A client's engine refers to this one: a listener may refer to its consumer, which then would never be garbage-collected.
    """

    def __init__(self, holder: Callable[[], RebalanceListener | None]) -> None:
        self._holder = holder

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> Any:
        return self._held().on_partitions_revoked(partitions)

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> Any:
        return self._held().on_partitions_assigned(partitions)

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> Any:
        return self._held().on_partitions_lost(partitions)

    def _held(self) -> Any:
        return self._holder() or RebalanceListener()
