"""Members of share groups on a simulated core: they send heartbeats and keep what the answers give them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from broker.cores.groups.share.group import ShareGroup
from broker.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from tests.broker.cores.groups.world import World

V = 1
Names = dict[str, list[int]]  # partitions by topic


def beat(member_id: str, epoch: int, *topics: str, group: str = "g", **fields: Any) -> ShareGroupHeartbeatRequest:
    """A heartbeat; with epoch 0 one that joins, subscribed to `orders` unless topics are named."""
    names = list(topics) or (["orders"] if epoch == 0 else None)
    return ShareGroupHeartbeatRequest(
        **{"group_id": group, "member_id": member_id, "member_epoch": epoch, "subscribed_topic_names": names, **fields}
    )


def found(world: World, group: str = "g") -> ShareGroup:
    present = world.core.group(group)
    assert isinstance(present, ShareGroup)
    return present


@dataclass
class Client:
    """A well-behaved member."""

    world: World
    member_id: str
    topics: tuple[str, ...] = ()
    epoch: int = 0
    owned: dict[bytes, list[int]] = field(default_factory=dict)

    def beat(self, *topics: str) -> ShareGroupHeartbeatResponse:
        """One heartbeat. Joins if the epoch is 0."""
        request = beat(self.member_id, self.epoch, *(topics or (self.topics if self.epoch == 0 else ())))
        answer: ShareGroupHeartbeatResponse = self.world.answer(request, V)
        if answer.error_code == 0:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.owned = {row.topic_id: row.partitions for row in answer.assignment.topic_partitions}
        return answer

    def leave(self) -> ShareGroupHeartbeatResponse:
        answer: ShareGroupHeartbeatResponse = self.world.answer(beat(self.member_id, -1), V)
        self.epoch, self.owned = 0, {}
        return answer

    @property
    def names(self) -> Names:
        """What it owns, by topic name."""
        return {str(self.world.topic_name(topic_id)): partitions for topic_id, partitions in self.owned.items()}


def settle(*clients: Client, rounds: int = 4) -> None:
    for _ in range(rounds):
        for client in clients:
            assert client.beat().error_code == 0
