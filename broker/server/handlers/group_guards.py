"""Guards of the requests about groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from broker.cores.groups.classic.replies import join_refused, sync_refused
from broker.protocol.acls import Operation, ResourceType
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.delete_groups import DeleteGroupsResponse
from broker.protocol.messages.describe_group_details import DescribeGroupDetailsResponse
from broker.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from broker.protocol.messages.heartbeat import HeartbeatResponse
from broker.protocol.messages.leave_group import LeaveGroupResponse
from broker.protocol.messages.list_groups import ListGroupsResponse
from broker.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from broker.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from broker.protocol.messages.sync_group import SyncGroupRequest
from broker.protocol.messages.trigger_rebalance import TriggerRebalanceResponse
from broker.server.guards import PASS, Acl, Guard, Narrowed, Refused, Verdict, on_each, only, split

if TYPE_CHECKING:
    from broker.protocol.messages.describe_group_details import DescribeGroupDetailsRequest
    from broker.protocol.messages.list_groups import ListGroupsRequest
    from broker.protocol.wire_types import Message
    from broker.server.access import Access
    from broker.server.exchange import Answerable
    from broker.server.resources import Resources

# KIP-559: from this version on, members name the protocol.
SYNC_WITH_PROTOCOL_SINCE = 5
DENIED = ErrorCode.GROUP_AUTHORIZATION_FAILED
TOPIC_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
READ_GROUP = Acl(Operation.READ, ResourceType.GROUP)


def _member(refusal: Callable[[int], Message]) -> Guard:
    """The guard of a member's request; `refusal` makes the answer in a version."""

    def check(request: Any, access: Access, exchange: Answerable, resources: Resources) -> Verdict:
        if access.allows(Operation.READ, ResourceType.GROUP, request.group_id):
            return PASS
        return Refused(refusal(exchange.version))

    return Guard(check, READ_GROUP)


def _check_sync(request: SyncGroupRequest, access: Access, exchange: Answerable, resources: Resources) -> Verdict:
    if exchange.version >= SYNC_WITH_PROTOCOL_SINCE and None in (request.protocol_type, request.protocol_name):
        return Refused(sync_refused(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
    if access.allows(Operation.READ, ResourceType.GROUP, request.group_id):
        return PASS
    return Refused(sync_refused(DENIED))


# ---- administrators


def _check_list(request: ListGroupsRequest, access: Access, exchange: Answerable, resources: Resources) -> Verdict:
    if access.allows_on_cluster(Operation.DESCRIBE):
        return PASS
    visible = access.of(Operation.DESCRIBE, ResourceType.GROUP)

    def complete(response: ListGroupsResponse) -> ListGroupsResponse:
        groups: Any = response.groups
        response.groups = only(groups, lambda group: visible[group.group_id])
        return response

    return Narrowed(request, complete)


def _check_describe(
    request: DescribeGroupsRequest, access: Access, exchange: Answerable, resources: Resources
) -> Verdict:
    verdict = _describe.check(request, access, exchange, resources)
    if not request.include_authorized_operations:
        return verdict

    def complete(response: DescribeGroupsResponse) -> Message:
        for group in response.groups:
            if not group.error_code:
                group.authorized_operations = access.operations_of(ResourceType.GROUP, group.group_id)
        return verdict.complete(response) if isinstance(verdict, Narrowed) else response

    return Narrowed(request, complete)


def _check_details(
    request: DescribeGroupDetailsRequest, access: Access, exchange: Answerable, resources: Resources
) -> Verdict:
    """As OffsetFetch, it shows nothing of topics that the client may not describe."""
    verdict = _details.check(request, access, exchange, resources)
    if not request.include_commits:
        return verdict
    visible = access.of(Operation.DESCRIBE, ResourceType.TOPIC)

    def complete(response: DescribeGroupDetailsResponse) -> Message:
        for group in response.groups:
            group.commits = [commits for commits in group.commits if visible[commits.topic]]
            group.pending = [pending for pending in group.pending if visible[pending.topic]]
        return verdict.complete(response) if isinstance(verdict, Narrowed) else response

    return verdict if isinstance(verdict, Refused) else Narrowed(request, complete)


def _described_row(group_id: str) -> DescribeGroupsResponse.Group:
    return DescribeGroupsResponse.Group(
        error_code=DENIED, group_id=group_id, group_state="", protocol_type="", protocol_data="", members=[]
    )


def _itself(group_id: str) -> str:
    return group_id


def _group_id(row: Any) -> str:
    group_id: str = row.group_id
    return group_id


_describe = on_each(Acl(Operation.DESCRIBE, ResourceType.GROUP), "groups", _itself, "groups", _described_row)

# ---- offsets


def _check_commit(request: OffsetCommitRequest, access: Access, exchange: Answerable, resources: Resources) -> Verdict:
    if not access.allows(Operation.READ, ResourceType.GROUP, request.group_id):
        return Refused(OffsetCommitResponse(topics=[_commit_denied(topic, DENIED) for topic in request.topics]))
    allowed, denied = _topics(request.topics, access.of(Operation.READ, ResourceType.TOPIC))
    if not denied:
        return PASS
    rows = [_commit_denied(topic, TOPIC_DENIED) for topic in denied]
    if not allowed:
        # As in Kafka, a commit in which nothing is allowed does not reach the group.
        return Refused(OffsetCommitResponse(topics=rows))
    request.topics = allowed

    def complete(response: OffsetCommitResponse) -> OffsetCommitResponse:
        response.topics += rows
        return response

    return Narrowed(request, complete)


def _commit_denied(topic: OffsetCommitRequest.Topic, error: ErrorCode) -> OffsetCommitResponse.Topic:
    return OffsetCommitResponse.Topic(
        name=topic.name,
        partitions=[
            OffsetCommitResponse.Partition(partition_index=partition.partition_index, error_code=error)
            for partition in topic.partitions
        ],
    )


def _check_delete(request: OffsetDeleteRequest, access: Access, exchange: Answerable, resources: Resources) -> Verdict:
    if not access.allows(Operation.DELETE, ResourceType.GROUP, request.group_id):
        return Refused(OffsetDeleteResponse(error_code=DENIED, topics=[]))
    allowed, denied = _topics(request.topics, access.of(Operation.READ, ResourceType.TOPIC))
    if not denied:
        return PASS
    request.topics = allowed

    def complete(response: OffsetDeleteResponse) -> OffsetDeleteResponse:
        if not response.error_code:
            response.topics += map(_delete_denied, denied)
        return response

    return Narrowed(request, complete)


def _delete_denied(topic: OffsetDeleteRequest.Topic) -> OffsetDeleteResponse.Topic:
    return OffsetDeleteResponse.Topic(
        name=topic.name,
        partitions=[
            OffsetDeleteResponse.Partition(partition_index=partition.partition_index, error_code=TOPIC_DENIED)
            for partition in topic.partitions
        ],
    )


def _topics(topics: list[Any], allowed: Mapping[str, bool]) -> tuple[list[Any], list[Any]]:
    return split(topics, lambda topic: allowed[topic.name])


JOIN = _member(lambda version: join_refused(DENIED, version))
HEARTBEAT = _member(lambda _: HeartbeatResponse(error_code=DENIED))
LEAVE = _member(lambda _: LeaveGroupResponse(error_code=DENIED))
SYNC = Guard(_check_sync, READ_GROUP)
LIST = Guard(_check_list, Acl(Operation.DESCRIBE, ResourceType.CLUSTER), Acl(Operation.DESCRIBE, ResourceType.GROUP))
DESCRIBE = Guard(_check_describe, *_describe.acls)
_details = on_each(
    Acl(Operation.DESCRIBE, ResourceType.GROUP),
    "groups",
    _itself,
    "groups",
    lambda group_id: DescribeGroupDetailsResponse.Group(error_code=DENIED, group_id=group_id),
)
DESCRIBE_DETAILS = Guard(_check_details, *_details.acls, Acl(Operation.DESCRIBE, ResourceType.TOPIC))
DELETE = on_each(
    Acl(Operation.DELETE, ResourceType.GROUP),
    "groups_names",
    _itself,
    "results",
    lambda group_id: DeleteGroupsResponse.Result(error_code=DENIED, group_id=group_id),
)
# As for LeaveGroup, by which Kafka lets an administrator remove members.
TRIGGER_REBALANCE = on_each(
    READ_GROUP,
    "groups",
    _group_id,
    "groups",
    lambda row: TriggerRebalanceResponse.Group(error_code=DENIED, group_id=row.group_id),
)
OFFSET_COMMIT = Guard(_check_commit, READ_GROUP, Acl(Operation.READ, ResourceType.TOPIC))
OFFSET_DELETE = Guard(_check_delete, Acl(Operation.DELETE, ResourceType.GROUP), Acl(Operation.READ, ResourceType.TOPIC))
