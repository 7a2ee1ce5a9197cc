"""The requests and timers of share groups, as the coordinator looks them up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from broker.cores.groups.classic.join import check_join
from broker.cores.groups.classic.replies import join_refused
from broker.cores.groups.share.departures import on_session_timeout
from broker.cores.groups.share.describe import describe_share_groups
from broker.cores.groups.share.group import SESSION
from broker.cores.groups.share.heartbeat import heartbeat
from broker.cores.groups.share.offsets import alter_offsets, delete_offsets, describe_offsets
from broker.cores.groups.share.partitions import topic_deleted
from broker.cores.groups.share.recovery import resume_group
from broker.cores.groups.step import Step
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from broker.protocol.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from broker.protocol.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
from broker.protocol.messages.join_group import JoinGroupRequest
from broker.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from broker.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from broker.protocol.wire_types import Message

HANDLERS: dict[type[Message], Callable[[Step, Any], None]] = {
    ShareGroupHeartbeatRequest: heartbeat,
    ShareGroupDescribeRequest: describe_share_groups,
    DescribeShareGroupOffsetsRequest: describe_offsets,
    AlterShareGroupOffsetsRequest: alter_offsets,
    DeleteShareGroupOffsetsRequest: delete_offsets,
}


def _refuse_join(step: Step, request: JoinGroupRequest) -> None:
    """As in Kafka, an Empty share group does not become a classic one."""
    error = check_join(step, request) or ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    step.reply(join_refused(error, step.request.api_version, request.member_id))


# Requests of the classic protocol to a share group.
CLASSIC: dict[type[Message], Callable[[Step, Any], None]] = {JoinGroupRequest: _refuse_join}
TIMERS: dict[str, Callable[..., None]] = {SESSION: on_session_timeout}
__all__ = ["CLASSIC", "HANDLERS", "TIMERS", "resume_group", "topic_deleted"]
