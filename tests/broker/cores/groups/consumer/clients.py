"""Members of consumer groups on a simulated core: they send heartbeats and keep what the answers give them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from broker.cores.groups.consumer.group import ConsumerGroup
from broker.cores.groups.records import GenerationFloor, to_row
from broker.cores.groups.records.consumer import Owned
from broker.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from tests.broker.cores.groups.world import World

V = 1
Names = dict[str, list[int]]  # partitions by topic


def beat(
    member_id: str,
    epoch: int,
    *,
    owned: Mapping[bytes, Sequence[int]] | None = None,
    group: str = "g",
    **fields: Any,
) -> ConsumerGroupHeartbeatRequest:
    """A heartbeat; with epoch 0 one that joins, subscribed to `orders`."""
    if epoch == 0:
        owned = {} if owned is None else owned
        subscription = {} if "subscribed_topic_regex" in fields else {"subscribed_topic_names": ["orders"]}
        fields = {"rebalance_timeout_ms": 60_000, **subscription, **fields}
    rows = None
    if owned is not None:
        rows = [
            ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic_id, partitions=list(partitions))
            for topic_id, partitions in owned.items()
        ]
    return ConsumerGroupHeartbeatRequest(
        group_id=group, member_id=member_id, member_epoch=epoch, topic_partitions=rows, **fields
    )


def found(world: World, group: str = "g") -> ConsumerGroup:
    present = world.core.group(group)
    assert isinstance(present, ConsumerGroup)
    return present


def kinds(world: World, since: int) -> list[int]:
    """The record types that were appended, as Kafka numbers them; negative for tombstones."""
    out = []
    for record in world.records[since:]:
        if isinstance(record, GenerationFloor):
            continue
        row: Any = to_row(record)  # type: ignore[arg-type]
        kind = int.from_bytes(row.key[:2], "big")
        out.append(kind if row.value is not None else -kind)
    return out


@dataclass
class Client:
    """A well-behaved member: it gives up at once what it is told to, and says what it owns when that has changed."""

    world: World
    member_id: str
    group: str = "g"
    fields: dict[str, Any] = field(default_factory=dict)
    epoch: int = 0
    owned: dict[bytes, list[int]] = field(default_factory=dict)
    told: dict[bytes, list[int]] = field(default_factory=dict)
    is_unsure: bool = False  # the last answer was lost, so the next heartbeat says everything

    def beat(self, **fields: Any) -> ConsumerGroupHeartbeatResponse:
        """One heartbeat. Joins if the epoch is 0."""
        if self.epoch == 0:
            request = beat(self.member_id, 0, group=self.group, **{**self.fields, **fields})
        elif self.is_unsure:
            full = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ["orders"], **self.fields, **fields}
            request = beat(self.member_id, self.epoch, owned=self.owned, group=self.group, **full)
        else:
            owned = self.owned if self.owned != self.told else None
            request = beat(self.member_id, self.epoch, owned=owned, group=self.group, **fields)
        self.told, self.is_unsure = self.owned, False
        answer: ConsumerGroupHeartbeatResponse = self.world.answer(request, V)
        if answer.error_code == 0:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.owned = {row.topic_id: row.partitions for row in answer.assignment.topic_partitions}
        return answer

    def leave(self, epoch: int = -1) -> ConsumerGroupHeartbeatResponse:
        fields = {name: value for name, value in self.fields.items() if name == "instance_id"}
        answer: ConsumerGroupHeartbeatResponse = self.world.answer(
            beat(self.member_id, epoch, group=self.group, **fields), V
        )
        self.epoch, self.owned = 0, {}
        return answer

    @property
    def names(self) -> Names:
        """What it owns, by topic name."""
        return named(self.world, {topic_id: frozenset(owned) for topic_id, owned in self.owned.items()})


def named(world: World, owned: Owned) -> Names:
    return {str(world.topic_name(topic_id)): sorted(partitions) for topic_id, partitions in owned.items()}


def settle(*clients: Client, rounds: int = 6) -> None:
    """Heartbeats in turn, until all have what they are to have."""
    for _ in range(rounds):
        for client in clients:
            assert client.beat().error_code == 0


def owners(world: World, group: str = "g") -> dict[tuple[bytes, int], list[str]]:
    """Who owns each partition, or has not confirmed that it gave it up."""
    out: dict[tuple[bytes, int], list[str]] = {}
    for member in found(world, group).members.values():
        for part in (member.current.assigned, member.current.pending_revocation):
            for topic_id, partitions in part.items():
                for partition in partitions:
                    out.setdefault((topic_id, partition), []).append(member.member_id)
    return out
