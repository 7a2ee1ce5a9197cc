"""The requests and timers of share groups, as the coordinator looks them up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from broker.cores.groups.share.departures import on_session_timeout
from broker.cores.groups.share.describe import describe_share_groups
from broker.cores.groups.share.group import SESSION
from broker.cores.groups.share.heartbeat import heartbeat
from broker.cores.groups.share.offsets import alter_offsets, delete_offsets, describe_offsets
from broker.cores.groups.share.partitions import topic_deleted
from broker.cores.groups.share.recovery import resume_group
from broker.cores.groups.step import Step
from broker.protocol.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from broker.protocol.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from broker.protocol.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
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
TIMERS: dict[str, Callable[..., None]] = {SESSION: on_session_timeout}
__all__ = ["HANDLERS", "TIMERS", "resume_group", "topic_deleted"]
