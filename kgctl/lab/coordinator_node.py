"""A broker with one topic that runs the real group coordinator, for clients that send it frames."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from broker.cores.core import Effects, RequestContext
from broker.cores.groups.coordinator import Coordinator
from broker.cores.groups.counted_topics import CountedTopics
from broker.cores.groups.settings import GroupSettings
from broker.protocol.api_keys import APIS
from broker.protocol.codec import decode
from broker.protocol.frames import decode_request_header, response_frame
from broker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from broker.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from broker.protocol.messages.heartbeat import HeartbeatRequest
from broker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from broker.protocol.wire_types import Message
from kgctl.lab.world import World

NODE_ID, HOST, PORT = 1, "broker", 9092
GROUP, TOPIC = "group", "topic"
_TOPIC_ID = (1).to_bytes(16, "big")

Reply = Callable[[bytes], None]


class CoordinatorNode(CountedTopics):
    """Takes request frames and answers them; `changed` runs when members came or went."""

    def __init__(self, world: World, partitions: int, changed: Callable[[], None]) -> None:
        self._world, self._partitions, self._changed = world, partitions, changed
        self._core = Coordinator(GroupSettings(), self._new_id, self)
        self._ids = self._tickets = 0
        self._waiting: dict[int, tuple[Reply, int, int]] = {}
        self.member_ids: frozenset[str] = frozenset()
        self._perform(self._core.resume(world.now_ms, world.now_ms))

    def counts(self) -> Mapping[str, int]:
        return {TOPIC: self._partitions}

    def receive(self, frame: bytes, reply: Reply) -> None:
        """A request without its length; the reply is a response without its length."""
        header = decode_request_header(frame)
        request = decode(APIS[header.api_key].request, frame, header.api_version, header.body_offset)
        version, correlation_id = header.api_version, header.correlation_id
        answer = self._answer(request, version)
        if answer is not None:
            reply(response_frame(answer, version, correlation_id)[4:])
            return
        self._tickets += 1
        self._waiting[self._tickets] = (reply, version, correlation_id)
        context = RequestContext(
            self._tickets, version, header.client_id or "", "/127.0.0.1", "User:ANONYMOUS", self._world.now_ms
        )
        self._perform(self._core.handle(request, context, self._world.now_ms))

    def _perform(self, effects: Effects) -> None:  # type: ignore[type-arg]
        for ticket, response, _ in effects.replies:
            reply, version, correlation_id = self._waiting.pop(ticket)
            reply(response_frame(response, version, correlation_id)[4:])
        for ticket in effects.unanswered:
            self._waiting.pop(ticket, None)
        if effects.wake_at_ms is not None:
            self._world.after(max(effects.wake_at_ms - self._world.now_ms, 0), self._advance, effects.wake_at_ms)
        if effects.events or effects.state_records:
            self._look_up_members()

    def _advance(self, wake_at_ms: int) -> None:
        if self._core.wake_at() == wake_at_ms:
            self._perform(self._core.advance(self._world.now_ms, self._world.now_ms))

    def _look_up_members(self) -> None:
        """Ask the coordinator itself."""
        context = RequestContext(0, 5, "lab", "/127.0.0.1", "User:ANONYMOUS", self._world.now_ms)
        (reply,) = self._core.handle(DescribeGroupsRequest(groups=[GROUP]), context, self._world.now_ms).replies
        response = reply.response
        assert isinstance(response, DescribeGroupsResponse)
        found = frozenset(member.member_id for group in response.groups for member in group.members)
        if found != self.member_ids:
            self.member_ids = found
            self._changed()

    def _new_id(self) -> str:
        self._ids += 1
        return f"{self._ids:08}"

    # --- what the coordinator does not answer ---

    def _answer(self, request: Message, version: int) -> Message | None:
        if isinstance(request, ApiVersionsRequest):
            rows = [
                ApiVersionsResponse.ApiKey(api_key=key, min_version=api.versions[0], max_version=api.versions[-1])
                for key, api in APIS.items()
            ]
            return ApiVersionsResponse(api_keys=rows)
        if isinstance(request, MetadataRequest):
            return self._metadata()
        if isinstance(request, FindCoordinatorRequest):
            if version < 4:
                return FindCoordinatorResponse(node_id=NODE_ID, host=HOST, port=PORT)
            found = [
                FindCoordinatorResponse.Coordinator(key=key, node_id=NODE_ID, host=HOST, port=PORT)
                for key in request.coordinator_keys
            ]
            return FindCoordinatorResponse(coordinators=found)
        return None

    def _metadata(self) -> MetadataResponse:
        partitions = [
            MetadataResponse.Partition(
                partition_index=number, leader_id=NODE_ID, leader_epoch=0, replica_nodes=[NODE_ID], isr_nodes=[NODE_ID]
            )
            for number in range(self._partitions)
        ]
        topic = MetadataResponse.Topic(name=TOPIC, topic_id=_TOPIC_ID, partitions=partitions)
        broker = MetadataResponse.Broker(node_id=NODE_ID, host=HOST, port=PORT)
        return MetadataResponse(brokers=[broker], controller_id=NODE_ID, cluster_id="lab", topics=[topic])


def is_heartbeat(frame: bytes) -> bool:
    return APIS[decode_request_header(frame).api_key].request is HeartbeatRequest
