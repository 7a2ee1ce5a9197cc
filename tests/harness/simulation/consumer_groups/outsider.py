"""Clients that are not members of consumer groups: they describe, list, fetch, delete and commit, and one has a wrong epoch."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from broker.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from broker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from broker.protocol.wire_types import Message
from tests.harness.simulation.consumer_groups.chronicle import is_consumer_group
from tests.harness.simulation.outsider import Outsider

if TYPE_CHECKING:
    from tests.harness.simulation.consumer_groups.world import ConsumerGroupsWorld


class ConsumerGroupsOutsider(Outsider):
    _world: ConsumerGroupsWorld

    def _request(self, random: Random, group_id: str, instance_ids: list[str]) -> tuple[Message, int]:
        if is_consumer_group(group_id):
            kind = random.randrange(4)
            if kind == 0:
                return ConsumerGroupDescribeRequest(group_ids=[group_id]), random.randrange(2)
            if kind == 1:
                return self._stray(random, group_id), 1
            instance_ids = []
        return super()._request(random, group_id, instance_ids)

    def _stray(self, random: Random, group_id: str) -> ConsumerGroupHeartbeatRequest:
        """A heartbeat of a member that the group does not have, or in an epoch that it does not have yet."""
        ids = [member.member_id for member in self._world.members if member.member_id]
        member_id, epoch = random.choice([("unknown", 1), *((member_id, 2**31 - 1) for member_id in ids)])
        return ConsumerGroupHeartbeatRequest(group_id=group_id, member_id=member_id, member_epoch=epoch)
