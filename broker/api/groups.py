"""Group requests over a read-only view of the topics and the coordinator core: unknown topics, lookups, versions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from broker.cores.core import Effects, Reply, RequestContext
from broker.cores.groups.coordinator import HANDLERS, Coordinator
from broker.cores.groups.step import GroupEffects
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.delete_groups import DeleteGroupsRequest
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from broker.protocol.messages.offset_commit import OffsetCommitRequest
from broker.protocol.messages.offset_delete import OffsetDeleteRequest
from broker.protocol.messages.offset_fetch import OffsetFetchRequest
from broker.protocol.wire_types import Message

GROUP_KEY, TRANSACTION_KEY = 0, 1


class Node(NamedTuple):
    """This broker, as clients reach it."""

    node_id: int
    host: str
    port: int


class GroupApi:
    """Answers every request about groups, as Kafka's request layer and coordinator do together."""

    REQUESTS: tuple[type[Message], ...] = (*HANDLERS, FindCoordinatorRequest)
    API_KEYS: frozenset[int] = frozenset(request.API_KEY for request in REQUESTS)

    def __init__(self, coordinator: Coordinator, node: Node) -> None:
        self._coordinator = coordinator
        self._node = node
        self._handlers: dict[type[Message], Callable[[Any, RequestContext, int], GroupEffects]] = {
            **dict.fromkeys(HANDLERS, coordinator.handle),
            FindCoordinatorRequest: self._find_coordinator,
        }

    def handle(self, request: Message, context: RequestContext, now_ms: int) -> GroupEffects:
        """The effects of one request; see `Coordinator.handle`."""
        return self._handlers[type(request)](request, context, now_ms)

    def groups_to_load(self, request: Message) -> list[str]:
        """The groups whose offsets the runner is to hand to `Coordinator.load` before it hands over this request."""
        named = _GROUPS_NAMED.get(type(request))
        if named is None:
            return []
        return [group_id for group_id in dict.fromkeys(named(request)) if self._coordinator.needs_load(group_id)]

    def topic_deleted(self, topic: str, now_ms: int, wall_ms: int) -> GroupEffects:
        """Drop the topic's offsets; the groups in the store that have some are to be loaded before."""
        return self._coordinator.topic_deleted(topic, now_ms, wall_ms)

    # ---- requests --------------------------------------------------------------------------------------------------

    def _find_coordinator(self, request: FindCoordinatorRequest, context: RequestContext, now_ms: int) -> GroupEffects:
        error, message = _lookup_error(request.key_type)
        # Without an error the message is "NONE" where there is one key, and empty where there may be several.
        node = Node(-1, "", -1) if error else self._node
        if context.api_version < 4:
            response = FindCoordinatorResponse(
                error_code=error,
                error_message=message or "NONE",
                node_id=node.node_id,
                host=node.host,
                port=node.port,
            )
            return self._answer(context, response)
        coordinators = [
            FindCoordinatorResponse.Coordinator(
                key=key,
                node_id=node.node_id,
                host=node.host,
                port=node.port,
                error_code=error,
                error_message=message,
            )
            for key in request.coordinator_keys
        ]
        return self._answer(context, FindCoordinatorResponse(coordinators=coordinators))

    def _answer(self, context: RequestContext, response: Message) -> GroupEffects:
        return Effects([], [Reply(context.ticket, response)], self._coordinator.wake_at())


def _lookup_error(key_type: int) -> tuple[ErrorCode, str]:
    if key_type == GROUP_KEY:
        return ErrorCode.NONE, ""
    if key_type == TRANSACTION_KEY:
        # Clients retry "not available" for ever; this code they take as final.
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "this broker does not serve transactions yet"
    return ErrorCode.INVALID_REQUEST, f"key type {key_type} is not known"


def _fetched(request: OffsetFetchRequest) -> Iterable[str]:
    return [group.group_id for group in request.groups] or [request.group_id]


# What touches offsets.
_GROUPS_NAMED: dict[type[Message], Callable[[Any], Iterable[str]]] = {
    OffsetCommitRequest: lambda request: [request.group_id],
    OffsetDeleteRequest: lambda request: [request.group_id],
    OffsetFetchRequest: _fetched,
    DeleteGroupsRequest: lambda request: request.groups_names,
}
