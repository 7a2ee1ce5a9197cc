"""Requests about groups: the coordinator answers them, at once or later.

Those that name many groups are taken in slices, so that other clients have their turns between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.protocol.messages.delete_groups import DeleteGroupsRequest
from broker.protocol.messages.describe_group_details import DescribeGroupDetailsRequest
from broker.protocol.messages.describe_groups import DescribeGroupsRequest
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from broker.protocol.messages.offset_fetch import OffsetFetchRequest
from broker.protocol.messages.trigger_rebalance import TriggerRebalanceRequest
from broker.server.slices import Sliced, Slices

if TYPE_CHECKING:
    from broker.protocol.wire_types import Message
    from broker.server.exchange import Exchange
    from broker.server.resources import Resources

# How many groups one slice looks at. A group may have a thousand members, and a thousand commits in the store.
SLICE = 10


def _itself(name: str) -> str:
    return name


def _group_id(row: Any) -> str:
    group_id: str = row.group_id
    return group_id


def _offsets_of(row: OffsetFetchRequest.Group) -> tuple[str, tuple[tuple[str, tuple[int, ...]], ...] | None]:
    topics = None if row.topics is None else tuple((topic.name, tuple(topic.partition_indexes)) for topic in row.topics)
    return row.group_id, topics


SLICED: dict[type[Message], Sliced] = {
    DescribeGroupsRequest: Sliced("groups", "groups", _itself, SLICE),
    DescribeGroupDetailsRequest: Sliced("groups", "groups", _itself, SLICE),
    TriggerRebalanceRequest: Sliced("groups", "groups", _group_id, SLICE),
    OffsetFetchRequest: Sliced("groups", "groups", _offsets_of, SLICE),
    DeleteGroupsRequest: Sliced("groups_names", "results", _itself, SLICE),
    FindCoordinatorRequest: Sliced("coordinator_keys", "coordinators", _itself, SLICE),
}


def group_request(request: Message, exchange: Exchange, resources: Resources) -> None:
    sliced = SLICED.get(type(request))
    runner = resources.runner
    if sliced is None or len(getattr(request, sliced.asked)) <= 1:
        runner.submit(request, exchange)
    else:
        Slices(request, sliced, exchange, runner.submit).go_on()
