"""What an assignor of your own is made of: derive a class from `Assignor`, and name it as `module:name`."""

from __future__ import annotations

from kgctl.client.consumer.assignors.assignor import (
    Assignment,
    Assignor,
    ClusterView,
    RebalanceProtocol,
    Subscription,
)
from kgctl.client.consumer.group_metadata import ConsumerGroupMetadata
from kgctl.model.topic_partition import TopicPartition

__all__ = [
    "Assignment",
    "Assignor",
    "ClusterView",
    "ConsumerGroupMetadata",
    "RebalanceProtocol",
    "Subscription",
    "TopicPartition",
]
