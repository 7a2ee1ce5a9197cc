"""Carries out the commands of a NetworkClient over the links of a simulated world."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from broker.protocol.api_keys import APIS
from broker.protocol.codec import decode
from broker.protocol.errors import ErrorCode
from broker.protocol.frames import decode_request_header, response_frame
from broker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from broker.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from broker.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from broker.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from broker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from broker.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from broker.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from broker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from broker.protocol.wire_types import Message
from kgctl.client.net.errors import Refused, Unreachable
from kgctl.client.network.client import NetworkClient
from kgctl.client.network.commands import Close, Command, Connect, Write
from tests.harness.feeding import offers
from tests.harness.simulation.network import Link

if TYPE_CHECKING:
    from tests.harness.simulation.members.world import MemberWorld

NODE = 1


class Wire:
    """One connection of a client. Versions, metadata and coordinators are answered by the world, the rest by the broker."""

    def __init__(self, wires: Wires, number: int, link: Link) -> None:
        self.name = wires.name
        self._wires, self._number, self.link = wires, number, link
        link.client = self
        self._asked: dict[int, tuple[int, int]] = {}
        self._local_us = 0

    def write(self, command: Write) -> None:
        frame = b"".join(command.buffers)[4:]
        header = decode_request_header(frame)
        request = decode(APIS[header.api_key].request, frame, header.api_version, header.body_offset)
        world = self._wires.world
        is_idle = not self._asked and world.clock.us >= self._local_us
        if isinstance(request, ApiVersionsRequest | MetadataRequest | FindCoordinatorRequest) or (
            is_idle and world.is_moved()
        ):
            self._local_us = max(self._local_us, world.clock.us + world.delay_us() + world.delay_us())
            world.clock.at(self._local_us, self._answer_locally, request, header.api_version, header.correlation_id)
        else:
            correlation = self.link.send(request, header.api_version)
            self._asked[correlation] = (header.correlation_id, header.api_version)

    def received(self, link: Link, correlation: int, response: Any) -> None:
        number, version = self._asked.pop(correlation)
        # Answers keep the order of the requests.
        at_us = max(self._local_us, self._wires.world.clock.us)
        frame = response_frame(response, version, number)[4:]
        self._wires.world.clock.at(at_us, self._wires.deliver, self._number, frame)

    def disconnected(self, link: Link) -> None:
        self._wires.lost(self._number)

    def _answer_locally(self, request: Message, version: int, correlation: int) -> None:
        if self.link.is_open:
            answer = self._wires.world.answer(request, version)
            self._wires.deliver(self._number, response_frame(answer, version, correlation)[4:])


class Wires:
    """All connections of one client. `changed` runs its next turn; `later` delays what a paused process cannot receive."""

    def __init__(
        self,
        world: MemberWorld,
        name: str,
        network: NetworkClient,
        later: Callable[..., None],
        changed: Callable[[], None],
    ) -> None:
        self.world, self.name = world, name
        self._network, self._later, self._changed = network, later, changed
        self._open: dict[int, Wire] = {}

    def carry_out(self, commands: list[Command]) -> None:
        for command in commands:
            if isinstance(command, Connect):
                self._later(self.world.delay_us(), self._connect, command.link)
                self._open[command.link] = None  # type: ignore[assignment]
            elif isinstance(command, Close):
                wire = self._open.pop(command.link, None)
                if wire is not None:
                    wire.link.close()
            else:
                self._open[command.link].write(command)

    def close(self) -> None:
        """The process ends."""
        for wire in self._open.values():
            if wire is not None:
                wire.link.close()
        self._open.clear()

    def deliver(self, number: int, frame: bytes) -> None:
        self._later(0, self._received, number, frame)

    def lost(self, number: int) -> None:
        self._later(0, self._lost, number)

    def _connect(self, number: int) -> None:
        if number not in self._open:
            return
        if self.world.broker.loop.dead:
            del self._open[number]
            self._network.lost(number, Refused("the broker is not running"), self.world.now_ms)
        else:
            self._open[number] = Wire(self, number, self.world.connect(self))
            self._network.connected(number, self.world.now_ms)
        self._changed()

    def _received(self, number: int, frame: bytes) -> None:
        if number in self._open:
            self._network.received(number, frame, self.world.now_ms)
            self._changed()

    def _lost(self, number: int) -> None:
        if self._open.pop(number, None) is not None:
            self._network.lost(number, Unreachable("the connection is lost"), self.world.now_ms)
            self._changed()


def versions() -> ApiVersionsResponse:
    return offers({key: (api.versions[0], api.versions[-1]) for key, api in APIS.items()})


def coordinator(request: FindCoordinatorRequest, version: int, error: int) -> FindCoordinatorResponse:
    where = (-1, "", -1) if error else (NODE, "broker", 9092)
    if version < 4:
        return FindCoordinatorResponse(error_code=error, node_id=where[0], host=where[1], port=where[2])
    rows = [
        FindCoordinatorResponse.Coordinator(
            key=key, node_id=where[0], host=where[1], port=where[2], error_code=error, error_message=""
        )
        for key in request.coordinator_keys
    ]
    return FindCoordinatorResponse(coordinators=rows)


def moved(request: Any) -> Message:
    """The answer of a broker that is not the coordinator."""
    code = ErrorCode.NOT_COORDINATOR
    if isinstance(request, JoinGroupRequest):
        return JoinGroupResponse(error_code=code, protocol_name="", leader="", member_id=request.member_id, members=[])
    if isinstance(request, SyncGroupRequest):
        return SyncGroupResponse(error_code=code, assignment=b"")
    if isinstance(request, OffsetFetchRequest):
        rows = [OffsetFetchResponse.Group(group_id=one.group_id, topics=[], error_code=code) for one in request.groups]
        return OffsetFetchResponse(groups=rows)
    if isinstance(request, OffsetCommitRequest):
        return OffsetCommitResponse(
            topics=[
                OffsetCommitResponse.Topic(
                    name=topic.name,
                    partitions=[
                        OffsetCommitResponse.Partition(partition_index=row.partition_index, error_code=code)
                        for row in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )
    if isinstance(request, LeaveGroupRequest):
        return LeaveGroupResponse(error_code=code)
    if isinstance(request, ConsumerGroupHeartbeatRequest):
        return ConsumerGroupHeartbeatResponse(error_code=code)
    assert isinstance(request, HeartbeatRequest)
    return HeartbeatResponse(error_code=code)


def metadata(
    request: MetadataRequest, partitions: Mapping[str, int], topic_id: Callable[[str], bytes | None]
) -> MetadataResponse:
    names = partitions if request.topics is None else [topic.name or "" for topic in request.topics]
    return MetadataResponse(
        brokers=[MetadataResponse.Broker(node_id=NODE, host="broker", port=9092, rack=None)],
        controller_id=NODE,
        cluster_id="simulated",
        topics=[_topic(name, partitions.get(name), topic_id(name)) for name in names],
    )


def _topic(name: str, count: int | None, topic_id: bytes | None) -> MetadataResponse.Topic:
    if count is None or topic_id is None:
        return MetadataResponse.Topic(name=name, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, partitions=[])
    rows = [
        MetadataResponse.Partition(
            partition_index=number, leader_id=NODE, leader_epoch=0, replica_nodes=[NODE], isr_nodes=[NODE]
        )
        for number in range(count)
    ]
    return MetadataResponse.Topic(name=name, topic_id=topic_id, partitions=rows)
