"""The guard of OffsetFetch: DESCRIBE on each group, and on each topic whose offsets it returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from broker.protocol.acls import Operation, ResourceType
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from broker.protocol.wire_types import Gradual
from broker.server.guards import PASS, Acl, Guard, Narrowed, Refused, Verdict, split

if TYPE_CHECKING:
    from broker.server.access import Access
    from broker.server.exchange import Answerable
    from broker.server.resources import Resources

GROUP_ERROR_SINCE = 2
GROUPS_SINCE = 8


def _check(request: OffsetFetchRequest, access: Access, exchange: Answerable, resources: Resources) -> Verdict:
    describable = access.of(Operation.DESCRIBE, ResourceType.GROUP)
    if exchange.version >= GROUPS_SINCE:
        return _check_groups(request, describable, access)
    if not describable[request.group_id]:
        return Refused(_refusal(request, exchange.version))
    visible = access.of(Operation.DESCRIBE, ResourceType.TOPIC)
    request.topics, denied = _split(request.topics, visible)
    if request.topics is not None and not denied:
        return PASS

    def complete(response: OffsetFetchResponse) -> OffsetFetchResponse:
        response.topics = _completed(response.topics, denied, visible)
        return response

    return Narrowed(request, complete)


def _refusal(request: OffsetFetchRequest, version: int) -> OffsetFetchResponse:
    error = ErrorCode.GROUP_AUTHORIZATION_FAILED
    if version >= GROUP_ERROR_SINCE:
        return OffsetFetchResponse(error_code=error)
    return OffsetFetchResponse(topics=[_denied(topic, error) for topic in request.topics or ()])


def _check_groups(request: OffsetFetchRequest, describable: Mapping[str, bool], access: Access) -> Verdict:
    visible = access.of(Operation.DESCRIBE, ResourceType.TOPIC)
    allowed, refused = split(request.groups, lambda group: describable[group.group_id])
    denied_topics = []
    for group in allowed:
        group.topics, denied = _split(group.topics, visible)
        denied_topics.append(denied)
    if not refused and not any(denied_topics) and all(group.topics is not None for group in allowed):
        return PASS
    request.groups = allowed

    def complete(response: OffsetFetchResponse) -> OffsetFetchResponse:
        for group, denied in zip(response.groups, denied_topics, strict=True):
            group.topics = _completed(group.topics, denied, visible)
        response.groups += [
            OffsetFetchResponse.Group(
                group_id=group.group_id, topics=[], error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED
            )
            for group in refused
        ]
        return response

    return Narrowed(request, complete)


_Topics = list[OffsetFetchRequest.Topic]


def _split(topics: _Topics | None, visible: Mapping[str, bool]) -> tuple[_Topics | None, _Topics]:
    """The topics that may be asked for, and those that may not; None asks for all topics that have offsets."""
    return (None, []) if topics is None else split(topics, lambda topic: visible[topic.name])


def _completed(topics: Any, denied: _Topics, visible: Mapping[str, bool]) -> Any:
    """The answered topics with the denied ones, without those that the client did not name and may not see."""
    if isinstance(topics, Gradual):
        return topics.only(lambda topic: visible[topic.name])
    shown = [topic for topic in topics if visible[topic.name]]
    return shown + [_denied(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED) for topic in denied]


def _denied(topic: OffsetFetchRequest.Topic, error: ErrorCode) -> OffsetFetchResponse.Topic:
    return OffsetFetchResponse.Topic(
        name=topic.name,
        partitions=[
            OffsetFetchResponse.Partition(partition_index=index, committed_offset=-1, metadata="", error_code=error)
            for index in topic.partition_indexes
        ],
    )


OFFSET_FETCH = Guard(_check, Acl(Operation.DESCRIBE, ResourceType.GROUP), Acl(Operation.DESCRIBE, ResourceType.TOPIC))
