"""A group whose members stay, own partitions unevenly, and commit."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from broker.protocol.consumer_protocol import ConsumerProtocolSubscription, encode_blob
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from broker.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from broker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from broker.protocol.wire_types import Message
from kgctl.client.net.cluster import Ask, Node
from tests.harness.commandline import Kgctl
from tests.harness.group_answers import assignment
from tests.harness.running import until

# Without heartbeats, members stay for this long.
SESSION_MS = 1_200_000
Owned = dict[str, list[int]]


@dataclass
class Members:
    """`members` by their ids: what each owns. Each generation of `rebalances` is the set of its members."""

    kgctl: Kgctl
    group: str
    members: dict[str, Owned] = field(default_factory=dict)
    rebalances: list[frozenset[str]] = field(default_factory=list)
    generation: int = 0

    def join(self, owned: Owned) -> None:
        """One more member joins, while the others rejoin; each then gets what it owned before, and this one `owned`."""
        others = list(self.members)
        required = self._join_once("")
        assert required.error_code == ErrorCode.MEMBER_ID_REQUIRED
        self.members[required.member_id] = owned
        with ThreadPoolExecutor(len(self.members)) as threads:
            joined = threads.submit(self._join_once, required.member_id)
            if others:
                until(lambda: self._heartbeat(others[0]) == ErrorCode.REBALANCE_IN_PROGRESS, 30)
            answers = [*threads.map(self._join_once, others), joined.result()]
        assert {one.error_code for one in answers} == {ErrorCode.NONE}, answers
        (self.generation,) = {one.generation_id for one in answers}
        leader = answers[0].leader
        given = [
            SyncGroupRequest.Assignment(member_id=member, assignment=assignment(parts))
            for member, parts in self.members.items()
        ]
        with ThreadPoolExecutor(len(self.members)) as threads:
            list(threads.map(lambda member: self._sync(member, given if member == leader else []), self.members))
        self.rebalances.append(frozenset(self.members))

    def commit(self, offsets: dict[tuple[str, int], int]) -> None:
        for member, owned in self.members.items():
            topics = [
                OffsetCommitRequest.Topic(
                    name=topic,
                    partitions=[
                        OffsetCommitRequest.Partition(
                            partition_index=part, committed_offset=offsets[topic, part], committed_metadata=""
                        )
                        for part in parts
                    ],
                )
                for topic, parts in owned.items()
                if parts
            ]
            if topics:
                request = OffsetCommitRequest(
                    group_id=self.group,
                    generation_id_or_member_epoch=self.generation,
                    member_id=member,
                    topics=topics,
                )
                answer = self._ask(request, OffsetCommitResponse, 7)
                assert {row.error_code for topic in answer.topics for row in topic.partitions} == {ErrorCode.NONE}

    def _join_once(self, member: str) -> Any:
        subscription = encode_blob(ConsumerProtocolSubscription(topics=["clicks"]))
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=60_000,
            member_id=member,
            protocol_type="consumer",
            protocols=[JoinGroupRequest.Protocol(name="range", metadata=subscription)],
        )
        return self._ask(request, JoinGroupResponse, 5)

    def _sync(self, member: str, given: list[SyncGroupRequest.Assignment]) -> None:
        request = SyncGroupRequest(
            group_id=self.group, generation_id=self.generation, member_id=member, assignments=given
        )
        assert self._ask(request, SyncGroupResponse, 4).error_code == ErrorCode.NONE

    def _heartbeat(self, member: str) -> int:
        request = HeartbeatRequest(group_id=self.group, generation_id=self.generation, member_id=member)
        return int(self._ask(request, HeartbeatResponse, 3).error_code)

    def _ask(self, request: Message, answer: type[Message], version: int) -> Any:
        with self.kgctl.admin() as admin:
            (node,) = admin.run(admin.cluster.coordinators([self.group])).values()
            assert isinstance(node, Node), node
            return admin.run(admin.cluster.ask(Ask(node.endpoint, request, answer, max_version=version)))
