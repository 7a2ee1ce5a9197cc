"""Requests about groups: each is a step of the groups core, which answers it at once or later.

Requests that name many groups run in slices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from broker.protocol.messages.delete_groups import DeleteGroupsRequest
from broker.protocol.messages.describe_group_details import DescribeGroupDetailsRequest
from broker.protocol.messages.describe_groups import DescribeGroupsRequest
from broker.protocol.messages.heartbeat import HeartbeatRequest
from broker.protocol.messages.join_group import JoinGroupRequest
from broker.protocol.messages.leave_group import LeaveGroupRequest
from broker.protocol.messages.list_groups import ListGroupsRequest
from broker.protocol.messages.offset_commit import OffsetCommitRequest
from broker.protocol.messages.offset_delete import OffsetDeleteRequest
from broker.protocol.messages.offset_fetch import OffsetFetchRequest
from broker.protocol.messages.sync_group import SyncGroupRequest
from broker.protocol.messages.trigger_rebalance import TriggerRebalanceRequest
from broker.server.declaration import Declaration, Slicing
from broker.server.handlers import group_guards
from broker.server.handlers.offset_delete import delete_offsets
from broker.server.handlers.offset_fetch_guard import OFFSET_FETCH

if TYPE_CHECKING:
    from broker.protocol.wire_types import Message
    from broker.server.declaration import SliceHandler
    from broker.server.exchange import Answerable, Exchange
    from broker.server.guards import Guard
    from broker.server.resources import Resources

# Groups per slice. A group may have a thousand members, and a thousand committed offsets in the store.
SLICE = 10


_Loads = Callable[[Any], Sequence[str]]


def groups_to_load(request: Message) -> list[str]:
    """The groups whose committed offsets must be in memory before this request runs."""
    loads = next((declared.loads for declared in REQUESTS if declared.request is type(request)), None)
    return [] if loads is None else list(dict.fromkeys(loads(request)))


def _step(
    request_type: type[Message],
    guard: Guard,
    slicing: Slicing | None = None,
    loads: _Loads | None = None,
    *,
    is_use: bool = False,
) -> Declaration:
    """Declare a request that the groups core handles. `is_use`: only clients of the group send it."""

    def run(request: Any, exchange: Answerable, resources: Resources) -> None:
        if is_use:
            exchange.connection.session.client.use_group(request.group_id)
        if loads is None:
            resources.groups.runner.submit(request, exchange)
        else:
            resources.groups.load_and_submit(request, exchange, loads(request))

    def begin(request: Message, exchange: Exchange, resources: Resources) -> SliceHandler:
        return lambda part, answerable: run(part, answerable, resources)

    return Declaration(request_type, run if slicing is None else begin, guard, slicing, loads)


def _leave(request: LeaveGroupRequest, exchange: Exchange, resources: Resources) -> None:
    exchange.connection.session.client.leave_group(request.group_id)
    resources.groups.runner.submit(request, exchange)


def _itself(name: str) -> str:
    return name


def _group_id(row: Any) -> str:
    group_id: str = row.group_id
    return group_id


def _offsets_of(row: OffsetFetchRequest.Group) -> tuple[str, tuple[tuple[str, tuple[int, ...]], ...] | None]:
    topics = None if row.topics is None else tuple((topic.name, tuple(topic.partition_indexes)) for topic in row.topics)
    return row.group_id, topics


def _one(request: OffsetCommitRequest | OffsetDeleteRequest) -> Sequence[str]:
    return (request.group_id,)


def _fetched(request: OffsetFetchRequest) -> Sequence[str]:
    return [group.group_id for group in request.groups] or [request.group_id]


def _detailed(request: DescribeGroupDetailsRequest) -> Sequence[str]:
    return request.groups if request.include_commits else ()


REQUESTS = (
    _step(OffsetCommitRequest, group_guards.OFFSET_COMMIT, loads=_one, is_use=True),
    _step(OffsetFetchRequest, OFFSET_FETCH, slicing=Slicing("groups", "groups", _offsets_of, SLICE), loads=_fetched),
    _step(JoinGroupRequest, group_guards.JOIN, is_use=True),
    _step(HeartbeatRequest, group_guards.HEARTBEAT, is_use=True),
    Declaration(LeaveGroupRequest, _leave, group_guards.LEAVE),
    _step(SyncGroupRequest, group_guards.SYNC),
    _step(DescribeGroupsRequest, group_guards.DESCRIBE, Slicing("groups", "groups", _itself, SLICE)),
    _step(ListGroupsRequest, group_guards.LIST),
    _step(DeleteGroupsRequest, group_guards.DELETE, Slicing("groups_names", "results", _itself, SLICE)),
    Declaration(OffsetDeleteRequest, delete_offsets, group_guards.OFFSET_DELETE, loads=_one),
    _step(
        DescribeGroupDetailsRequest,
        group_guards.DESCRIBE_DETAILS,
        slicing=Slicing("groups", "groups", _itself, SLICE),
        loads=_detailed,
    ),
    _step(TriggerRebalanceRequest, group_guards.TRIGGER_REBALANCE, Slicing("groups", "groups", _group_id, SLICE)),
)
