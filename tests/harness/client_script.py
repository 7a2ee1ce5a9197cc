"""Drives a NetworkClient and its participants without sockets: the test is the brokers, and time is a number.

script = Script(partitions={"orders": 3})
script.turn()                                     # connects, learns versions and metadata
script.network.send(1, Outgoing(...), script.now_ms)
script.turn()
script.answer(script.requests(ProduceRequest)[0], ProduceResponse(...))
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from broker.protocol.api_keys import APIS
from broker.protocol.codec import decode
from broker.protocol.errors import ErrorCode
from broker.protocol.frames import decode_request_header, response_frame
from broker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from broker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from broker.protocol.wire_types import Message
from kgctl.client.net.errors import KgctlError, Refused, Unreachable
from kgctl.client.net.steps import Endpoint
from kgctl.client.network.client import NetworkClient
from kgctl.client.network.commands import Close, Command, Connect, Write
from kgctl.client.network.nodes import Node
from kgctl.client.network.participant import Participant
from kgctl.client.network.settings import NetworkSettings
from tests.harness.feeding import offers

SEED = Endpoint("seed", 9092)


@dataclass(eq=False)
class Request:
    """A request that arrived at an address."""

    link: int
    endpoint: Endpoint
    message: Any
    version: int
    correlation_id: int
    is_answered: bool = False


@dataclass
class Script:
    """Nodes 1 to `node_count` at host1:9092, host2:9092, ...; the bootstrap list is seed:9092, which is node 1 as well.

    Connections open in the turn after `Connect`, unless their endpoint is in `down` (refused) or in `silent` (nothing
    happens). ApiVersions, Metadata and FindCoordinator are answered in the next turn; `answers` adds functions by class of
    request, or removes one with None. All other requests stay in `pending` until `answer`, `fail` or a time-out, and block
    automatic answers on their connection, as in a broker.
    """

    node_count: int = 1
    partitions: dict[str, int] = field(default_factory=dict)
    settings: NetworkSettings = field(default_factory=NetworkSettings)
    seed: int = 1
    now_ms: int = 1_000_000
    bootstrap: tuple[Endpoint, ...] = (SEED,)
    offered: Mapping[int, tuple[int, int]] = field(
        default_factory=lambda: {key: (api.versions[0], api.versions[-1]) for key, api in APIS.items()}
    )
    answers: dict[type[Message], Callable[[Request], Message | None] | None] = field(default_factory=dict)
    down: set[Endpoint] = field(default_factory=set)
    silent: set[Endpoint] = field(default_factory=set)
    # Who leads each partition; by default the nodes in turn. Topic ids by name.
    leaders: dict[tuple[str, int], tuple[int, int]] = field(default_factory=dict)
    topic_ids: dict[str, bytes] = field(default_factory=dict)
    internal: set[str] = field(default_factory=set)
    coordinator: int = 1
    session_ms: int | None = None
    participants: list[Participant] = field(default_factory=list)
    received: list[Request] = field(default_factory=list)
    pending: list[Request] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    network: NetworkClient = field(init=False)

    def __post_init__(self) -> None:
        self.nodes = {number: Node(number, f"host{number}", 9092, None) for number in range(1, self.node_count + 1)}
        self.network = NetworkClient(self.bootstrap, self.settings, random.Random(self.seed))
        self._links: dict[int, Endpoint] = {}
        self._opening: list[Connect] = []
        self._written: list[int] = []

    # --- turns ---

    def turn(self, turns: int = 20) -> None:
        """Turns without time, until nothing moves any more."""
        for _ in range(turns):
            if not self.step():
                return

    def step(self) -> bool:
        """One turn: what was opened, answered or written since the last one, participants, commands. Whether anything moved."""
        opening, self._opening = self._opening, []
        written, self._written = self._written, []
        for command in opening:
            self._open(command)
        for link in written:
            self.network.written(link, self.now_ms)
        blocked: set[int] = set()  # brokers answer the requests of a connection in order
        for request in list(self.pending):
            answer = None if request.link in blocked else self._automatic(request)
            if answer is not None:
                self.answer(request, answer)
            else:
                blocked.add(request.link)
        commands = self._advance()
        self.commands += commands
        for each in commands:
            self._carry_out(each)
        return bool(opening or written or commands)

    def sleep(self, ms: int) -> None:
        """Time passes; turns happen when the network or a participant asks for one, and at the end."""
        until = self.now_ms + ms
        self.turn()
        while (wake := self.wake_at_ms()) is not None and wake < until:
            assert wake > self.now_ms, "somebody wakes for nothing"
            self.now_ms = wake
            self.turn()
        self.now_ms = until
        self.turn()

    def wake_at_ms(self) -> int | None:
        times = [self.network.wake_at_ms(), *(each.wake_at_ms() for each in self.participants)]
        return min((time for time in times if time is not None), default=None)

    def _advance(self) -> list[Command]:
        commands: list[Command] = []
        for _ in range(100):
            before = self.network.changes
            for participant in self.participants:
                participant.advance(self.now_ms)
            commands += self.network.advance(self.now_ms)
            if self.network.changes == before:
                return commands
        raise AssertionError("the participants do not come to rest")

    # --- the other side ---

    def requests(self, kind: type[Message], endpoint: Endpoint | None = None) -> list[Request]:
        """Requests of a class without an answer, oldest first."""
        return [
            request
            for request in self.pending
            if isinstance(request.message, kind) and endpoint in (None, request.endpoint)
        ]

    def sent(self, kind: type[Message]) -> list[Any]:
        """All requests of a class so far."""
        return [request.message for request in self.received if isinstance(request.message, kind)]

    def connects(self) -> list[Connect]:
        return [command for command in self.commands if isinstance(command, Connect)]

    def closes(self) -> list[Close]:
        return [command for command in self.commands if isinstance(command, Close)]

    def answer(self, request: Request, message: Message, version: int | None = None) -> None:
        """Deliver an answer; `turn` lets the participants see what follows from it."""
        self.pending.remove(request)
        request.is_answered = True
        frame = response_frame(message, request.version if version is None else version, request.correlation_id)
        self.network.received(request.link, frame[4:], self.now_ms)

    def fail(self, request: Request, error: KgctlError | None = None) -> None:
        """End the connection on which a request was sent."""
        self.break_link(request.link, error)

    def break_node(self, endpoint: Endpoint, error: KgctlError | None = None) -> None:
        """End all connections to an address."""
        for link in [link for link, where in self._links.items() if where == endpoint]:
            self.break_link(link, error)

    def break_link(self, link: int, error: KgctlError | None = None) -> None:
        endpoint = self._links.pop(link)
        self.pending = [request for request in self.pending if request.link != link]
        self.network.lost(link, error or Unreachable(f"{endpoint}: the other side closed the connection"), self.now_ms)

    def links(self) -> list[Endpoint]:
        """Where connections are open."""
        return list(self._links.values())

    def endpoint(self, node_id: int) -> Endpoint:
        return self.nodes[node_id].endpoint

    def metadata(self, request: Request) -> MetadataResponse:
        """The state of the scripted cluster, for the topics that a request asks for."""
        asked = request.message.topics
        names: Iterable[str] = self.partitions if asked is None else [topic.name for topic in asked]
        brokers = [
            MetadataResponse.Broker(node_id=n.node_id, host=n.host, port=n.port, rack=n.rack)
            for n in self.nodes.values()
        ]
        topics = [self._topic(name) for name in names]
        return MetadataResponse(brokers=brokers, topics=topics, controller_id=1, cluster_id="scripted")

    def _topic(self, name: str) -> MetadataResponse.Topic:
        if name not in self.partitions:
            return MetadataResponse.Topic(name=name, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, partitions=[])
        rows = []
        for number in range(self.partitions[name]):
            leader, epoch = self.leaders.get((name, number), (number % self.node_count + 1, 0))
            rows.append(
                MetadataResponse.Partition(
                    partition_index=number,
                    leader_id=leader,
                    leader_epoch=epoch,
                    replica_nodes=list(self.nodes),
                    isr_nodes=list(self.nodes),
                )
            )
        topic_id = self.topic_ids.setdefault(name, len(self.topic_ids).to_bytes(15, "big") + b"\1")
        return MetadataResponse.Topic(name=name, topic_id=topic_id, is_internal=name in self.internal, partitions=rows)

    def find_coordinator(self, request: Request) -> FindCoordinatorResponse:
        node = self.nodes[self.coordinator]
        if request.version < 4:
            return FindCoordinatorResponse(node_id=node.node_id, host=node.host, port=node.port)
        rows = [
            FindCoordinatorResponse.Coordinator(key=key, node_id=node.node_id, host=node.host, port=node.port)
            for key in request.message.coordinator_keys
        ]
        return FindCoordinatorResponse(coordinators=rows)

    def _automatic(self, request: Request) -> Message | None:
        kind = type(request.message)
        if kind in self.answers:
            make = self.answers[kind]
            return None if make is None else make(request)
        if kind is ApiVersionsRequest:
            return self._versions()
        if kind is MetadataRequest:
            return self.metadata(request)
        return self.find_coordinator(request) if kind is FindCoordinatorRequest else None

    def _versions(self) -> ApiVersionsResponse:
        return offers(dict(self.offered))

    def _open(self, command: Connect) -> None:
        if command.endpoint in self.silent:
            return
        if command.endpoint in self.down:
            self.network.lost(command.link, Refused(f"{command.endpoint}: connection refused"), self.now_ms)
            return
        self._links[command.link] = command.endpoint
        self.network.connected(command.link, self.now_ms, self.session_ms)

    def _carry_out(self, command: Command) -> None:
        if isinstance(command, Connect):
            self._opening.append(command)
        elif isinstance(command, Close):
            self._links.pop(command.link, None)
            self._opening = [each for each in self._opening if each.link != command.link]
            self.pending = [request for request in self.pending if request.link != command.link]
        else:
            self._receive(command)

    def _receive(self, command: Write) -> None:
        frame = b"".join(command.buffers)[4:]
        header = decode_request_header(frame)
        message = decode(APIS[header.api_key].request, frame, header.api_version, header.body_offset)
        endpoint = self._links[command.link]
        request = Request(command.link, endpoint, message, header.api_version, header.correlation_id)
        self.received.append(request)
        if command.is_unanswered:
            self._written.append(command.link)
        else:
            self.pending.append(request)
