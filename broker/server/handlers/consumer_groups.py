"""Requests of the consumer protocol (KIP-848): each is a step of the groups core. Their guards are beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.protocol.acls import Operation, ResourceType
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from broker.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from broker.server.declaration import Declaration, Slicing
from broker.server.guards import PASS, Acl, Guard, Narrowed, Refused, Verdict, on_each

if TYPE_CHECKING:
    from broker.protocol.wire_types import Message
    from broker.server.access import Access
    from broker.server.declaration import SliceHandler
    from broker.server.exchange import Answerable, Exchange
    from broker.server.resources import Resources

# Groups per slice of a description. A group may have a thousand members.
SLICE = 10
READ_GROUP = Acl(Operation.READ, ResourceType.GROUP)
DESCRIBE_GROUP = Acl(Operation.DESCRIBE, ResourceType.GROUP)
DESCRIBE_TOPIC = Acl(Operation.DESCRIBE, ResourceType.TOPIC)
GROUP_DENIED, TOPIC_DENIED = ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED
HIDDEN_TOPICS = "The group has described topic(s) that the client is not authorized to describe."


def _is_enabled(resources: Resources) -> bool:
    return "consumer" in resources.config.group_coordinator_rebalance_protocols


# ---- ConsumerGroupHeartbeat


def _beat(request: ConsumerGroupHeartbeatRequest, exchange: Answerable, resources: Resources) -> Message | None:
    if not _is_enabled(resources):
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    client = exchange.connection.session.client
    (client.leave_group if request.member_epoch < 0 else client.use_group)(request.group_id)
    resources.groups.runner.submit(request, exchange)
    return None


def _check_beat(
    request: ConsumerGroupHeartbeatRequest, access: Access, exchange: Answerable, resources: Resources
) -> Verdict:
    if not access.allows(*READ_GROUP, request.group_id):
        return Refused(ConsumerGroupHeartbeatResponse(error_code=GROUP_DENIED))
    visible = access.of(*DESCRIBE_TOPIC)
    if not all(visible[topic] for topic in request.subscribed_topic_names or ()):
        return Refused(ConsumerGroupHeartbeatResponse(error_code=TOPIC_DENIED))
    return PASS


# ---- ConsumerGroupDescribe


def _describe(request: ConsumerGroupDescribeRequest, exchange: Exchange, resources: Resources) -> SliceHandler:
    def run(part: ConsumerGroupDescribeRequest, answerable: Answerable) -> Message | None:
        if not _is_enabled(resources):
            refused = [_undescribed(group_id, ErrorCode.UNSUPPORTED_VERSION) for group_id in part.group_ids]
            return ConsumerGroupDescribeResponse(groups=refused)
        resources.groups.runner.submit(part, answerable)
        return None

    return run


def _check_describe(
    request: ConsumerGroupDescribeRequest, access: Access, exchange: Answerable, resources: Resources
) -> Verdict:
    """As in Kafka, a group is described to a client only if it may describe all the topics that its members own or shall own."""
    verdict = _of_groups.check(request, access, exchange, resources)
    visible = access.of(*DESCRIBE_TOPIC)

    def complete(response: ConsumerGroupDescribeResponse) -> Message:
        for group in response.groups:
            if group.error_code:
                continue
            if request.include_authorized_operations:
                group.authorized_operations = access.operations_of(ResourceType.GROUP, group.group_id)
            if not all(visible[topic] for topic in _topics_of(group)):
                group.error_code, group.error_message, group.members = TOPIC_DENIED, HIDDEN_TOPICS, []
        return verdict.complete(response) if isinstance(verdict, Narrowed) else response

    return verdict if isinstance(verdict, Refused) else Narrowed(request, complete)


def _topics_of(group: ConsumerGroupDescribeResponse.Group) -> set[str]:
    return {
        row.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for row in assignment.topic_partitions
    }


def _undescribed(group_id: str, error: ErrorCode) -> ConsumerGroupDescribeResponse.Group:
    return ConsumerGroupDescribeResponse.Group(
        error_code=error,
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        assignor_name="",
        members=[],
    )


def _itself(name: Any) -> str:
    return str(name)


_of_groups = on_each(
    DESCRIBE_GROUP, "group_ids", _itself, "groups", lambda group_id: _undescribed(group_id, GROUP_DENIED)
)
REQUESTS = (
    Declaration(ConsumerGroupHeartbeatRequest, _beat, Guard(_check_beat, READ_GROUP, DESCRIBE_TOPIC)),
    Declaration(
        ConsumerGroupDescribeRequest,
        _describe,
        Guard(_check_describe, DESCRIBE_GROUP, DESCRIBE_TOPIC),
        Slicing("group_ids", "groups", _itself, SLICE),
    ),
)
