"""What a heartbeat says: everything when a member joins or after a failure, otherwise what changed. As Kafka's HeartbeatState."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from broker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgctl.client.consumer.group.settings import GroupSettings
from kgctl.client.consumer.subscription import SubscriptionState

# The numbers of partitions by topic id.
TopicIds: TypeAlias = "Mapping[bytes, frozenset[int]]"


class HeartbeatContents:
    def __init__(self, settings: GroupSettings, subscription: SubscriptionState) -> None:
        self._settings = settings
        self._subscription = subscription
        self._said: dict[str, Any] = {}

    def forget(self) -> None:
        """The group does not know the member, or a heartbeat may not have arrived: say everything again."""
        self._said = {}

    @property
    def is_outdated(self) -> bool:
        """The group does not know what the member subscribes to now."""
        return any(self._said.get(name) != value for name, value in self._subscribed().items())

    def request(self, member_id: str, epoch: int, owned: TopicIds) -> ConsumerGroupHeartbeatRequest:
        """The next heartbeat; epoch 0 joins, for which `forget` comes first."""
        settings = self._settings
        facts = {
            "rack_id": settings.client_rack,
            "rebalance_timeout_ms": settings.max_poll_interval_ms,
            "server_assignor": settings.remote_assignor,
            **self._subscribed(),
            "topic_partitions": {topic_id: sorted(numbers) for topic_id, numbers in owned.items()},
        }
        changed = {name: value for name, value in facts.items() if name not in self._said or self._said[name] != value}
        self._said = facts
        request = ConsumerGroupHeartbeatRequest(
            group_id=settings.group_id,
            member_id=member_id,
            member_epoch=epoch,
            instance_id=settings.group_instance_id,
        )
        for name, value in changed.items():
            if name == "topic_partitions":
                value = [
                    ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic_id, partitions=numbers)
                    for topic_id, numbers in sorted(value.items())
                ]
            setattr(request, name, value)
        return request

    def _subscribed(self) -> dict[str, Any]:
        subscription = self._subscription
        said_pattern = self._said.get("subscribed_topic_regex")
        # An empty pattern takes the earlier one back.
        pattern = subscription.broker_pattern or ("" if said_pattern else said_pattern)
        return {"subscribed_topic_names": sorted(subscription.topics), "subscribed_topic_regex": pattern}
