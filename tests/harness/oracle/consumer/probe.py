"""Asks the coordinators of a walk's groups which topics they see: a real Kafka shows a change of topics to clients before."""

from __future__ import annotations

import itertools
import time
import uuid
from collections.abc import Iterable

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from broker.protocol.messages.delete_groups import DeleteGroupsRequest
from broker.protocol.offsets_topic import partition_for
from tests.harness.oracle.consumer.topics import WITHIN_S, NoTopics
from tests.harness.oracle.over_socket import Line

MEMBER = "probe"
LEAVE = -1


def wait_until_seen(control: Line, partitions: Iterable[int], topic: str, count: int) -> None:
    """Until the coordinator of each of these partitions sees this many partitions of a topic; 0: until it sees no such topic."""
    deadline = time.monotonic() + WITHIN_S
    for partition in partitions:
        while _seen(control, partition, topic) != count:
            if time.monotonic() > deadline:
                raise NoTopics(f"the coordinator does not see {topic}")
            time.sleep(0.01)


def _seen(control: Line, partition: int, topic: str) -> int:
    """What a new group in this partition of __consumer_offsets would be assigned."""
    tag = uuid.uuid4().hex[:8]
    names = (f"probe-{tag}-{number}" for number in itertools.count())
    group = next(name for name in names if partition_for(name) == partition)
    joining = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=MEMBER,
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[topic],
        topic_partitions=[],
    )
    answer = control.ask(joining, 1)
    assert answer.error_code == ErrorCode.NONE, answer
    control.ask(ConsumerGroupHeartbeatRequest(group_id=group, member_id=MEMBER, member_epoch=LEAVE), 1)
    control.ask(DeleteGroupsRequest(groups_names=[group]), 2)
    return sum(len(one.partitions) for one in answer.assignment.topic_partitions)
