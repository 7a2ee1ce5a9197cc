"""What an application does when the partitions of its consumer change."""

from __future__ import annotations

from collections.abc import Collection

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
