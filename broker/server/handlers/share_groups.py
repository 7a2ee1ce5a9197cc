"""Requests of the share group protocol (KIP-932): each is a step of the groups core. Their guards are beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.cores.groups.descriptions import undescribed
from broker.protocol.acls import Operation, ResourceType
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from broker.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
from broker.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
from broker.protocol.messages.share_group_describe import ShareGroupDescribeRequest, ShareGroupDescribeResponse
from broker.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from broker.protocol.wire_types import ZERO_UUID
from broker.server.declaration import Declaration, Slicing
from broker.server.features import has_share_groups
from broker.server.guards import DENIALS, PASS, Acl, Guard, Narrowed, Refused, Verdict, on_each, split
from broker.server.handlers.newer_groups import (
    DESCRIBE_GROUP,
    DESCRIBE_TOPIC,
    GROUP_DENIED,
    READ_GROUP,
    SLICE,
    TOPIC_DENIED,
    describe_check,
    heartbeat_check,
    if_enabled,
    itself,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.protocol.wire_types import Message
    from broker.server.access import Access
    from broker.server.declaration import SliceHandler
    from broker.server.exchange import Answerable, Exchange
    from broker.server.resources import Resources

DELETE_GROUP = Acl(Operation.DELETE, ResourceType.GROUP)
READ_TOPIC = Acl(Operation.READ, ResourceType.TOPIC)
DISABLED = ErrorCode.UNSUPPORTED_VERSION
_DISABLED = "The version of API is not supported."


def _submit(request: Message, exchange: Answerable, resources: Resources, refused: Callable[[], Message]) -> Any:
    if not has_share_groups(resources.log):
        return refused()
    resources.groups.runner.submit(request, exchange)
    return None


def _if_enabled(check: Callable[[Any, Access, Answerable, Resources], Verdict], *acls: Acl) -> Guard:
    return if_enabled(_is_enabled, check, *acls)


def _is_enabled(resources: Resources) -> bool:
    return has_share_groups(resources.log)


# ---- ShareGroupHeartbeat


def _beat(request: ShareGroupHeartbeatRequest, exchange: Answerable, resources: Resources) -> Message | None:
    client = exchange.connection.session.client
    (client.leave_group if request.member_epoch < 0 else client.use_group)(request.group_id)
    answer: Message | None = _submit(
        request, exchange, resources, lambda: ShareGroupHeartbeatResponse(error_code=DISABLED)
    )
    return answer


# ---- ShareGroupDescribe


def _describe(request: ShareGroupDescribeRequest, exchange: Exchange, resources: Resources) -> SliceHandler:
    def run(part: ShareGroupDescribeRequest, answerable: Answerable) -> Message | None:
        def refused() -> Message:
            row = ShareGroupDescribeResponse.Group
            return ShareGroupDescribeResponse(
                groups=[undescribed(row, group_id, DISABLED) for group_id in part.group_ids]
            )

        answer: Message | None = _submit(part, answerable, resources, refused)
        return answer

    return run


def _assignments(member: Any) -> tuple[Any]:
    return (member.assignment,)


# ---- DescribeShareGroupOffsets


def _describe_offsets(
    request: DescribeShareGroupOffsetsRequest, exchange: Exchange, resources: Resources
) -> SliceHandler:
    def run(part: DescribeShareGroupOffsetsRequest, answerable: Answerable) -> Message | None:
        def refused() -> Message:
            groups = [_without_offsets(group, DISABLED) for group in part.groups]
            return DescribeShareGroupOffsetsResponse(groups=groups)

        answer: Message | None = _submit(part, answerable, resources, refused)
        return answer

    return run


def _check_describe_offsets(
    request: DescribeShareGroupOffsetsRequest, access: Access, exchange: Answerable, resources: Resources
) -> Verdict:
    """Of all topics, those are left out that the client may not describe; of named ones, each is refused."""
    verdict = _offsets_of_groups.check(request, access, exchange, resources)
    visible = access.of(*DESCRIBE_TOPIC)
    denied = {}
    for group in request.groups:
        if group.topics is not None:
            group.topics, denied[group.group_id] = split(group.topics, lambda topic: visible[topic.topic_name])

    def complete(response: DescribeShareGroupOffsetsResponse) -> Message:
        for group in response.groups:
            group.topics = [topic for topic in group.topics if visible[topic.topic_name]]
            group.topics += map(_offsets_denied, denied.get(group.group_id, ()))
        return verdict.complete(response) if isinstance(verdict, Narrowed) else response

    return verdict if isinstance(verdict, Refused) else Narrowed(request, complete)


def _offsets_denied(topic: DescribeShareGroupOffsetsRequest.Topic) -> DescribeShareGroupOffsetsResponse.Topic:
    return DescribeShareGroupOffsetsResponse.Topic(
        topic_name=topic.topic_name,
        topic_id=ZERO_UUID,
        partitions=[
            DescribeShareGroupOffsetsResponse.Partition(
                partition_index=number, start_offset=-1, error_code=TOPIC_DENIED, error_message=DENIALS[TOPIC_DENIED]
            )
            for number in topic.partitions
        ],
    )


def _without_offsets(
    asked: DescribeShareGroupOffsetsRequest.Group, error: ErrorCode
) -> DescribeShareGroupOffsetsResponse.Group:
    return DescribeShareGroupOffsetsResponse.Group(group_id=asked.group_id, error_code=error)


def _asked_of(
    row: DescribeShareGroupOffsetsRequest.Group,
) -> tuple[str, tuple[tuple[str, tuple[int, ...]], ...] | None]:
    topics = None if row.topics is None else tuple((topic.topic_name, tuple(topic.partitions)) for topic in row.topics)
    return row.group_id, topics


_offsets_of_groups = on_each(
    DESCRIBE_GROUP,
    "groups",
    lambda row: str(row.group_id),
    "groups",
    lambda asked: _without_offsets(asked, GROUP_DENIED),
)

# ---- AlterShareGroupOffsets


def _alter(request: AlterShareGroupOffsetsRequest, exchange: Answerable, resources: Resources) -> Message | None:
    answer: Message | None = _submit(
        request,
        exchange,
        resources,
        lambda: AlterShareGroupOffsetsResponse(error_code=DISABLED, error_message=_DISABLED),
    )
    return answer


def _check_alter(
    request: AlterShareGroupOffsetsRequest, access: Access, exchange: Answerable, resources: Resources
) -> Verdict:
    if not access.allows(*READ_GROUP, request.group_id):
        return Refused(AlterShareGroupOffsetsResponse(error_code=GROUP_DENIED, error_message=DENIALS[GROUP_DENIED]))
    readable = access.of(*READ_TOPIC)
    request.topics, denied = split(request.topics, lambda topic: readable[topic.topic_name])

    def complete(response: AlterShareGroupOffsetsResponse) -> Message:
        if not response.error_code:
            response.responses = [*(_alter_denied(topic, resources) for topic in denied), *response.responses]
        return response

    return Narrowed(request, complete) if denied else PASS


def _alter_denied(
    topic: AlterShareGroupOffsetsRequest.Topic, resources: Resources
) -> AlterShareGroupOffsetsResponse.Topic:
    found = resources.log.topics.get(topic.topic_name)
    return AlterShareGroupOffsetsResponse.Topic(
        topic_name=topic.topic_name,
        topic_id=ZERO_UUID if found is None else found.topic_id,
        partitions=[
            AlterShareGroupOffsetsResponse.Partition(
                partition_index=row.partition_index, error_code=TOPIC_DENIED, error_message=DENIALS[TOPIC_DENIED]
            )
            for row in topic.partitions
        ],
    )


# ---- DeleteShareGroupOffsets


def _delete(request: DeleteShareGroupOffsetsRequest, exchange: Answerable, resources: Resources) -> Message | None:
    answer: Message | None = _submit(
        request,
        exchange,
        resources,
        lambda: DeleteShareGroupOffsetsResponse(error_code=DISABLED, error_message=_DISABLED),
    )
    return answer


def _check_delete(
    request: DeleteShareGroupOffsetsRequest, access: Access, exchange: Answerable, resources: Resources
) -> Verdict:
    if not access.allows(*DELETE_GROUP, request.group_id):
        return Refused(DeleteShareGroupOffsetsResponse(error_code=GROUP_DENIED, error_message=DENIALS[GROUP_DENIED]))
    readable = access.of(*READ_TOPIC)
    request.topics, denied = split(request.topics, lambda topic: readable[topic.topic_name])
    rows = [
        DeleteShareGroupOffsetsResponse.Topic(
            topic_name=topic.topic_name,
            topic_id=ZERO_UUID,
            error_code=TOPIC_DENIED,
            error_message=DENIALS[TOPIC_DENIED],
        )
        for topic in denied
    ]
    if not request.topics:
        return Refused(DeleteShareGroupOffsetsResponse(responses=rows))

    def complete(response: DeleteShareGroupOffsetsResponse) -> Message:
        if not response.error_code:
            response.responses = [*rows, *response.responses]
        return response

    return Narrowed(request, complete) if denied else PASS


REQUESTS = (
    Declaration(
        ShareGroupHeartbeatRequest,
        _beat,
        _if_enabled(heartbeat_check(ShareGroupHeartbeatResponse), READ_GROUP, DESCRIBE_TOPIC),
    ),
    Declaration(
        ShareGroupDescribeRequest,
        _describe,
        _if_enabled(describe_check(ShareGroupDescribeResponse.Group, _assignments), DESCRIBE_GROUP, DESCRIBE_TOPIC),
        Slicing("group_ids", "groups", itself, SLICE),
    ),
    Declaration(
        DescribeShareGroupOffsetsRequest,
        _describe_offsets,
        _if_enabled(_check_describe_offsets, DESCRIBE_GROUP, DESCRIBE_TOPIC),
        Slicing("groups", "groups", _asked_of, SLICE),
    ),
    Declaration(AlterShareGroupOffsetsRequest, _alter, _if_enabled(_check_alter, READ_GROUP, READ_TOPIC)),
    Declaration(DeleteShareGroupOffsetsRequest, _delete, _if_enabled(_check_delete, DELETE_GROUP, READ_TOPIC)),
)
