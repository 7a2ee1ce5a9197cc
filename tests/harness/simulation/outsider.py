"""Clients that are not members: they describe, list, fetch, delete, remove, trigger rebalances and commit."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from broker.protocol.messages.delete_groups import DeleteGroupsRequest
from broker.protocol.messages.describe_group_details import DescribeGroupDetailsRequest
from broker.protocol.messages.describe_groups import DescribeGroupsRequest
from broker.protocol.messages.leave_group import LeaveGroupRequest
from broker.protocol.messages.list_groups import ListGroupsRequest
from broker.protocol.messages.offset_delete import OffsetDeleteRequest
from broker.protocol.messages.offset_fetch import OffsetFetchRequest
from broker.protocol.messages.trigger_rebalance import TriggerRebalanceRequest
from broker.protocol.wire_types import Message
from tests.harness.simulation.consumer import TOPIC, commit_request
from tests.harness.simulation.network import Link

if TYPE_CHECKING:
    from tests.harness.simulation.world import World


class Outsider:
    """Opens a connection for each request and closes it after the response."""

    name = "outsider"

    def __init__(self, world: World) -> None:
        self._world = world

    def act(self, group_id: str, instance_ids: list[str]) -> None:
        if not self._world.broker.loop.dead:
            Link(self._world, self).send(*self._request(self._world.random, group_id, instance_ids))

    def received(self, link: Link, correlation: int, response: Any) -> None:
        link.close()

    def disconnected(self, link: Link) -> None:
        pass

    def _request(self, random: Random, group_id: str, instance_ids: list[str]) -> tuple[Message, int]:
        partition = random.randrange(self._world.partitions)
        kind = random.randrange(10)
        if kind <= 2:
            return OffsetFetchRequest(group_id=group_id, topics=None), random.randrange(2, 8)
        if kind == 3:
            return DescribeGroupsRequest(groups=[group_id]), random.randrange(7)
        if kind == 4:
            if random.random() < 0.5:
                return DescribeGroupDetailsRequest(groups=[group_id]), 0
            return ListGroupsRequest(), random.randrange(6)
        if kind == 5:
            return commit_request(group_id, {partition: self._world.next_offset()}), random.randrange(2, 10)
        if kind == 6:
            topic = OffsetDeleteRequest.Topic(
                name=TOPIC, partitions=[OffsetDeleteRequest.Partition(partition_index=partition)]
            )
            return OffsetDeleteRequest(group_id=group_id, topics=[topic]), 0
        if kind == 7 and instance_ids:
            member = LeaveGroupRequest.Member(member_id="", group_instance_id=random.choice(instance_ids))
            return LeaveGroupRequest(group_id=group_id, members=[member]), random.randrange(3, 6)
        if kind == 8:
            return TriggerRebalanceRequest(groups=[TriggerRebalanceRequest.Group(group_id=group_id)]), 0
        return DeleteGroupsRequest(groups_names=[group_id]), random.randrange(3)
