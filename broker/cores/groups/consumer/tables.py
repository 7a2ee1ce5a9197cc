"""The requests and timers of consumer groups, as the coordinator looks them up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from broker.cores.groups.consumer.classic_members import on_join_timeout, on_sync_timeout
from broker.cores.groups.consumer.departures import on_rebalance_timeout, on_session_timeout
from broker.cores.groups.consumer.describe import describe_consumer_groups
from broker.cores.groups.consumer.group import JOIN, REBALANCE, REGEX, SESSION, SYNC
from broker.cores.groups.consumer.heartbeat import heartbeat
from broker.cores.groups.consumer.recovery import resume_group
from broker.cores.groups.consumer.regexes import resolve
from broker.cores.groups.step import Step
from broker.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from broker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from broker.protocol.wire_types import Message

HANDLERS: dict[type[Message], Callable[[Step, Any], None]] = {
    ConsumerGroupHeartbeatRequest: heartbeat,
    ConsumerGroupDescribeRequest: describe_consumer_groups,
}
TIMERS: dict[str, Callable[..., None]] = {
    SESSION: on_session_timeout,
    REBALANCE: on_rebalance_timeout,
    REGEX: resolve,
    JOIN: on_join_timeout,
    SYNC: on_sync_timeout,
}
__all__ = ["HANDLERS", "TIMERS", "resume_group"]
