"""Requests of the consumer protocol (KIP-848): each is a step of the groups core."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.cores.groups.descriptions import undescribed
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
from broker.server.handlers.newer_groups import (
    DESCRIBE_GROUP,
    DESCRIBE_TOPIC,
    READ_GROUP,
    SLICE,
    describe_check,
    heartbeat_check,
    if_enabled,
    itself,
)

if TYPE_CHECKING:
    from broker.protocol.wire_types import Message
    from broker.server.declaration import SliceHandler
    from broker.server.exchange import Answerable, Exchange
    from broker.server.resources import Resources

DISABLED = ErrorCode.UNSUPPORTED_VERSION


def _is_enabled(resources: Resources) -> bool:
    return "consumer" in resources.config.group_coordinator_rebalance_protocols


def _beat(request: ConsumerGroupHeartbeatRequest, exchange: Answerable, resources: Resources) -> Message | None:
    if not _is_enabled(resources):
        return ConsumerGroupHeartbeatResponse(error_code=DISABLED)
    client = exchange.connection.session.client
    (client.leave_group if request.member_epoch < 0 else client.use_group)(request.group_id)
    resources.groups.runner.submit(request, exchange)
    return None


def _describe(request: ConsumerGroupDescribeRequest, exchange: Exchange, resources: Resources) -> SliceHandler:
    def run(part: ConsumerGroupDescribeRequest, answerable: Answerable) -> Message | None:
        if not _is_enabled(resources):
            row = ConsumerGroupDescribeResponse.Group
            refused = [undescribed(row, group_id, DISABLED) for group_id in part.group_ids]
            return ConsumerGroupDescribeResponse(groups=refused)
        resources.groups.runner.submit(part, answerable)
        return None

    return run


def _assignments(member: Any) -> tuple[Any, Any]:
    return member.assignment, member.target_assignment


REQUESTS = (
    Declaration(
        ConsumerGroupHeartbeatRequest,
        _beat,
        if_enabled(_is_enabled, heartbeat_check(ConsumerGroupHeartbeatResponse), READ_GROUP, DESCRIBE_TOPIC),
    ),
    Declaration(
        ConsumerGroupDescribeRequest,
        _describe,
        if_enabled(
            _is_enabled,
            describe_check(ConsumerGroupDescribeResponse.Group, _assignments),
            DESCRIBE_GROUP,
            DESCRIBE_TOPIC,
        ),
        Slicing("group_ids", "groups", itself, SLICE),
    ),
)
