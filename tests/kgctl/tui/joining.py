"""A group member that a test controls step by step: join, sync, leave. It sends no heartbeats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from broker.protocol.consumer_protocol import ConsumerProtocolSubscription, encode_blob
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from broker.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from broker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kgctl.client.admin.admin import Admin
from kgctl.client.net.bootstrap import parse
from kgctl.client.net.cluster import Ask, Node
from kgctl.client.net.connector import ConnectionSettings
from tests.harness.group_answers import assignment


class Joining:
    """Blocking calls: `join` returns when the join phase ends, `sync` when the leader has sent the assignment."""

    def __init__(self, address: str, group: str, topics: Sequence[str], client_id: str) -> None:
        self._admin = Admin(ConnectionSettings(parse(address), client_id))
        self._group, self._topics = group, topics
        self.member_id, self.generation, self.leader = "", -1, ""
        (node,) = self._admin.run(self._admin.cluster.coordinators([group])).values()
        assert isinstance(node, Node), node
        self._endpoint = node.endpoint

    def join(self) -> None:
        joined = self._join()
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = joined.member_id
            joined = self._join()
        assert joined.error_code == 0, joined
        self.member_id, self.generation, self.leader = joined.member_id, joined.generation_id, joined.leader

    def sync(self, owned: Mapping[str, dict[str, list[int]]] | None = None) -> None:
        """The leader passes `owned`, the assignment by member id and topic."""
        request = SyncGroupRequest(
            group_id=self._group,
            generation_id=self.generation,
            member_id=self.member_id,
            assignments=[
                SyncGroupRequest.Assignment(member_id=member, assignment=assignment(topics))
                for member, topics in (owned or {}).items()
            ],
        )
        answer = self._admin.run(
            self._admin.cluster.ask(Ask(self._endpoint, request, SyncGroupResponse, max_version=4))
        )
        assert answer.error_code == 0, answer

    def leave(self) -> None:
        request = LeaveGroupRequest(group_id=self._group, members=[LeaveGroupRequest.Member(member_id=self.member_id)])
        self._admin.run(self._admin.cluster.ask(Ask(self._endpoint, request, LeaveGroupResponse)))

    def close(self) -> None:
        self._admin.close()

    def _join(self) -> JoinGroupResponse:
        subscription = encode_blob(ConsumerProtocolSubscription(topics=list(self._topics)))
        request = JoinGroupRequest(
            group_id=self._group,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=60_000,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequest.Protocol(name="range", metadata=subscription)],
        )
        return self._admin.run(self._admin.cluster.ask(Ask(self._endpoint, request, JoinGroupResponse, max_version=5)))
