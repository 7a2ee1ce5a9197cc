"""Consumer groups (KIP-848): how long a large one takes to settle, and what the broker needs for one target assignment."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence

from bench import load, pipelines, wire
from bench.wire import Refused
from broker.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from broker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

REBALANCE_TIMEOUT_MS = 300_000
SETTLED_WITHIN_S = 120.0
CREATED_AT_ONCE = 1_000


class Member:
    """A member that gives up and takes over partitions at once."""

    def __init__(self, group: str, number: int, topics: Sequence[str]) -> None:
        self._group, self._id, self._topics = group, f"{group}-{number:04}", list(topics)
        self.epoch = 0
        self.owned: dict[bytes, list[int]] = {}
        self._reported: dict[bytes, list[int]] = {}

    def heartbeat(self) -> ConsumerGroupHeartbeatRequest:
        request = ConsumerGroupHeartbeatRequest(group_id=self._group, member_id=self._id, member_epoch=self.epoch)
        if not self.epoch:
            request.rebalance_timeout_ms, request.subscribed_topic_names = REBALANCE_TIMEOUT_MS, self._topics
        if not self.epoch or self.owned != self._reported:
            request.topic_partitions = [
                ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in self.owned.items()
            ]
        self._reported = self.owned
        return request

    def take(self, answer) -> bool:  # type: ignore[no-untyped-def]
        """True: something has changed."""
        if answer.error_code:
            raise Refused(f"ConsumerGroupHeartbeat: error {answer.error_code}: {answer.error_message}")
        has_changed = answer.member_epoch != self.epoch or answer.assignment is not None
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.owned = {row.topic_id: row.partitions for row in answer.assignment.topic_partitions}
        return has_changed


def join_time_s(address: tuple[str, int], group: str, count: int, partitions: int) -> float:
    """Seconds from the first heartbeat of many members until their group is Stable; they send heartbeats without a pause."""
    topic = f"bench-{group}"
    wire.make_topic(address, topic, partitions)
    _wait_until_assignable(address, topic, partitions)
    members = [Member(group, number, [topic]) for number in range(count)]
    began = time.perf_counter()
    _settle(address, group, members)
    took_s = time.perf_counter() - began
    owned = sum(len(rows) for member in members for rows in member.owned.values())
    if owned != partitions:
        raise Refused(f"the members own {owned} of {partitions} partitions")
    return took_s


def target_s(address: tuple[str, int], group: str, count: int, partitions: int) -> float:
    """Seconds of the one heartbeat that assigns all partitions of new topics to many members."""
    topics = [f"bench-{group}-{number}" for number in range(partitions // CREATED_AT_ONCE)]
    members = [Member(group, number, topics) for number in range(count)]
    _settle(address, group, members)
    for topic in topics:
        wire.make_topic(address, topic, CREATED_AT_ONCE)
    with contextlib.closing(wire.connect(address)) as sock:
        first, epoch = members[0], members[0].epoch
        # A broker may see the topics one after another; the last assignment is that of all partitions.
        took_s, until = 0.0, time.perf_counter() + SETTLED_WITHIN_S
        while (
            len(first.owned) * CREATED_AT_ONCE < partitions
            and sum(map(len, first.owned.values())) < partitions // count
        ):
            began = time.perf_counter()
            first.take(wire.ask(sock, first.heartbeat()))
            if first.epoch > epoch:
                took_s, epoch = time.perf_counter() - began, first.epoch
            if began > until:
                raise Refused(f"after {SETTLED_WITHIN_S:.0f} s a member owns {first.owned}")
    return took_s


def heartbeat_lines(address: tuple[str, int], connections: int, tag: str) -> list[load.Line]:
    """Connections of members, each the only one of its group, that send heartbeats without news."""
    lines = []
    for number in range(connections):
        sock, member = wire.connect(address), Member(f"{tag}-{number}", 0, [])
        member.take(wire.ask(sock, member.heartbeat()))
        lines.append(load.Line(sock, member.heartbeat()))
    return lines


def _wait_until_assignable(address: tuple[str, int], topic: str, partitions: int) -> None:
    """A coordinator may see a topic seconds after clients do: wait until a lone member owns all of it."""
    member, until = Member(f"{topic}-probe", 0, [topic]), time.perf_counter() + SETTLED_WITHIN_S
    with contextlib.closing(wire.connect(address)) as sock:
        while sum(map(len, member.owned.values())) < partitions:
            member.take(wire.ask(sock, member.heartbeat()))
            if time.perf_counter() > until:
                raise Refused(f"the coordinator does not see {topic} within {SETTLED_WITHIN_S:.0f} s")
            time.sleep(0.01)


def _settle(address: tuple[str, int], group: str, members: Sequence[Member]) -> None:
    """Send heartbeats of all members in turn until the group is Stable."""
    until = time.perf_counter() + SETTLED_WITHIN_S
    while True:
        answers = pipelines.ask_all(address, [member.heartbeat() for member in members])
        changed = sum(member.take(answer) for member, answer in zip(members, answers, strict=True))
        if not changed:
            with contextlib.closing(wire.connect(address)) as sock:
                (found,) = wire.ask(sock, ConsumerGroupDescribeRequest(group_ids=[group])).groups
            if found.group_state == "Stable":
                return
        if time.perf_counter() > until:
            raise Refused(f"the group did not become Stable within {SETTLED_WITHIN_S:.0f} s")
