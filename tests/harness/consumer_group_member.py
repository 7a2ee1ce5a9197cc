"""A member of a consumer group (KIP-848) that sends a heartbeat only when a test says so."""

from __future__ import annotations

import base64
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from broker.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from tests.harness.wire_client import WireClient

LEAVE_EPOCH = -1
BEATS = 200


class ConsumerGroupMember:
    """`told` is the newest assignment that the coordinator sent, `owned` what the member says that it has; by topic id."""

    def __init__(self, client: WireClient, group: str, *topics: str, **fields: Any) -> None:
        self._client, self.group = client, group
        self.member_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self._subscription = {"subscribed_topic_names": list(topics), "rebalance_timeout_ms": 60_000, **fields}
        self.epoch = 0
        self.told: dict[bytes, list[int]] = {}
        self.owned: dict[bytes, list[int]] = {}

    @property
    def told_partitions(self) -> list[int]:
        return sorted(number for numbers in self.told.values() for number in numbers)

    def beat(self, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            **(
                {
                    **self._subscription,
                    "topic_partitions": [
                        ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic, partitions=numbers)
                        for topic, numbers in self.owned.items()
                    ],
                }
                | fields
            ),
        )
        answer: ConsumerGroupHeartbeatResponse = self._client.ask(request)
        assert not answer.error_code, (answer.error_code, answer.error_message)
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.told = {row.topic_id: list(row.partitions) for row in answer.assignment.topic_partitions}
        return answer

    def obey(self) -> None:
        """Give up and take what the newest answer says, and report it."""
        self.owned = dict(self.told)
        self.beat()

    def take(self, count: int) -> None:
        """Obey until it has this many partitions: Kafka learns of new topics a little later."""
        for _ in range(BEATS):
            self.obey()
            if len(self.told_partitions) == count and self.owned == self.told:
                return
        raise AssertionError(f"{self.told_partitions} after {BEATS} heartbeats")

    def leave(self) -> None:
        self.epoch = LEAVE_EPOCH
        self.beat()


@contextmanager
def consumer_group_member(client: WireClient, group: str, *topics: str, **fields: Any) -> Iterator[ConsumerGroupMember]:
    """A member that has joined. It leaves at the end."""
    member = ConsumerGroupMember(client, group, *topics, **fields)
    member.beat()
    try:
        yield member
    finally:
        member.leave()
