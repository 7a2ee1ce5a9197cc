"""The connections of a client to the nodes of a cluster: opening with backoff, requests in flight, timeouts, closing."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from broker.protocol.frames import correlation_id_of
from broker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from broker.protocol.wire_types import DecodeError, Message
from kgctl.client.net import wire
from kgctl.client.net.errors import KgctlError, NoAnswer, NotKafka, Unreachable
from kgctl.client.net.read_only import check_reads
from kgctl.client.network.backoff import backoff_ms
from kgctl.client.network.commands import Close, Command, Connect, Write
from kgctl.client.network.nodes import NEVER, Link, Node, Peer, Sent, State
from kgctl.client.network.outgoing import Outgoing
from kgctl.client.network.settings import NetworkSettings
from kgctl.client.network.throttling import throttled_for_ms
from kgctl.client.network.traffic import Observer, Traffic
from kgctl.client.network.versions import NEWEST, common_version, read_versions, silent

if TYPE_CHECKING:
    from collections.abc import Iterable
    from random import Random

# Of the lifetime of a session, as in Kafka's client: brokers see re-authentications spread in time (KIP-368).
_EARLIEST, _LATEST = 0.85, 0.95


class Connections:
    """`changes` counts what participants may wait for. `lost_nodes` counts connections that ended before their time."""

    def __init__(self, settings: NetworkSettings, random: Random) -> None:
        self.settings, self.random = settings, random
        self.peers: dict[int, Peer] = {}
        self.changes = 0
        self.lost_nodes = 0
        # Refused credentials and certificates. Until the program has seen it, further attempts might lock a user out.
        self.final_error: KgctlError | None = None
        self.traffic = Traffic()
        self.observer: Observer | None = None
        # When the last connection that served ended, or the first attempt began.
        self._reached_ms: int | None = None
        self._links: dict[int, Link] = {}
        self._numbers = itertools.count(1)
        self._correlation_ids = itertools.count(1)
        self._commands: list[Command] = []
        self._failed: list[tuple[Outgoing[Any], KgctlError]] = []

    # --- nodes ---

    def know(self, node: Node) -> Peer:
        """Remember a node. If its address has changed, its connection ends once it is idle."""
        peer = self.peers.get(node.node_id)
        if peer is None:
            peer = self.peers[node.node_id] = Peer(node)
        elif peer.node != node:
            if peer.node.endpoint != node.endpoint:
                for link in (peer.link, peer.successor):
                    if link is not None:
                        link.is_leaving = True
                peer.blocked_until_ms = peer.failures = 0
            peer.node = node
        return peer

    def adopt(self, nodes: Iterable[Node]) -> None:
        """Nodes of the cluster take over the connections that were opened to their addresses in the bootstrap list."""
        strangers = {peer.node.endpoint: peer for peer in self.peers.values() if peer.node.node_id < 0 and peer.link}
        for node in nodes:
            peer = self.know(node)
            stranger = strangers.pop(node.endpoint, None)
            if stranger is not None and peer.link is None and stranger.link is not None:
                peer.link, stranger.link = stranger.link, None
                peer.link.peer = peer
                peer.ranges, peer.features = stranger.ranges, stranger.features

    def is_ready(self, peer: Peer, now_ms: int) -> bool:
        link = peer.link
        return (
            link is not None
            and link.state is State.READY
            and not link.is_leaving
            and len(link.in_flight) + len(link.unwritten) < self.settings.max_in_flight_requests_per_connection
            and now_ms >= peer.throttled_until_ms
            and now_ms < link.expires_ms
        )

    def connect(self, peer: Peer, now_ms: int) -> bool:
        """Begin to connect, if there is no connection and backoff allows one."""
        if peer.link is not None or now_ms < peer.blocked_until_ms or self.is_refused(peer):
            return False
        peer.link = self._open(peer, now_ms)
        return True

    def is_refused(self, peer: Peer) -> bool:
        """Whether no attempt is made: credentials were refused, and the program has not seen the error yet."""
        return self.final_error is not None and peer.error is not None and peer.error.is_final

    def unreached_ms(self, now_ms: int) -> int:
        """How long no node has been connected; 0 while one is, or before the first attempt."""
        if self._reached_ms is None or any(link.state is State.READY for link in self._links.values()):
            return 0
        return now_ms - self._reached_ms

    def _open(self, peer: Peer, now_ms: int) -> Link:
        settings = self.settings
        if self._reached_ms is None:
            self._reached_ms = now_ms
        timeout = backoff_ms(
            settings.socket_connection_setup_timeout_ms,
            settings.socket_connection_setup_timeout_max_ms,
            peer.setup_failures,
            self.random,
        )
        link = Link(next(self._numbers), peer, peer.node.endpoint, now_ms + timeout, now_ms)
        self._links[link.number] = link
        peer.attempted_ms = now_ms
        self._commands.append(Connect(link.number, link.endpoint, timeout))
        return link

    # --- requests ---

    def send(self, peer: Peer, outgoing: Outgoing[Any], now_ms: int) -> None:
        """Send on a connection that is ready. A request that cannot be sent fails in the next `take_commands`."""
        version = common_version(peer, outgoing.kind, outgoing.min_version, outgoing.max_version)
        if isinstance(version, KgctlError):
            self.fail_later(outgoing, version)
        elif version is None or peer.link is None:
            self.fail_later(outgoing, Unreachable(f"{peer.node.endpoint}: the connection is not ready"))
        else:
            outgoing.version = version
            self._write(peer.link, outgoing, now_ms)

    def fail_later(self, outgoing: Outgoing[Any], error: KgctlError) -> None:
        self._failed.append((outgoing, error))

    def _write(self, link: Link, outgoing: Outgoing[Any], now_ms: int) -> None:
        number = next(self._correlation_ids) & 0x7FFFFFFF
        try:
            request = outgoing.message()
            if self.settings.read_only:
                check_reads(request)
            frame = wire.request_frame(request, outgoing.version, number, self.settings.client_id)
        except KgctlError as error:
            self.fail_later(outgoing, error)
            return
        outgoing.sent_ms = link.used_ms = now_ms
        deadline = now_ms + outgoing.timeout_ms
        is_unanswered = outgoing.response is None
        self._count(link, outgoing, number, request, sum(map(len, frame)) - 4)
        (link.unwritten if is_unanswered else link.in_flight).append(Sent(number, outgoing, deadline))
        link.deadline_ms = min(link.deadline_ms, deadline)
        self._commands.append(Write(link.number, frame, is_unanswered))  # type: ignore[arg-type]

    def _count(self, link: Link, outgoing: Outgoing[Any], number: int, request: Message, size: int) -> None:
        row = self.traffic.of(type(request))
        row.requests += 1
        row.request_bytes += size
        if self.observer is not None:
            note = self.observer.sent_unanswered if outgoing.response is None else self.observer.sent
            note(link.number, link.endpoint, number, request, outgoing.version, size)

    # --- events ---

    def connected(self, number: int, now_ms: int, session_ms: int | None = None) -> None:
        """A connection is open, and authenticated for that long."""
        link = self._links.get(number)
        if link is None:
            return
        link.state, link.used_ms = State.ASKING_VERSIONS, now_ms
        self.traffic.connections += 1
        if session_ms is not None:
            link.renew_ms = now_ms + int(session_ms * self.random.uniform(_EARLIEST, _LATEST))
            link.expires_ms = now_ms + session_ms
        self._ask_versions(link, NEWEST, now_ms)

    def _ask_versions(self, link: Link, version: int, now_ms: int) -> None:
        settings = self.settings
        request = ApiVersionsRequest(
            client_software_name=settings.software_name, client_software_version=settings.software_version
        )

        def answered(answer: ApiVersionsResponse | KgctlError, at_ms: int) -> None:
            if isinstance(answer, KgctlError):
                return  # the connection is lost, and says why
            result = read_versions(link.peer, answer, version)
            if isinstance(result, KgctlError):
                self._close(link, result, at_ms)
            elif result is not None:
                self._ask_versions(link, result, at_ms)
            else:
                self._ready(link)

        outgoing = Outgoing(request, ApiVersionsResponse, answered, settings.request_timeout_ms, version=version)
        self._write(link, outgoing, now_ms)

    def _ready(self, link: Link) -> None:
        peer = link.peer
        link.state = State.READY
        peer.failures = peer.setup_failures = 0
        peer.error = None
        if peer.successor is link and peer.link is not None:
            peer.link.is_leaving = True

    def received(self, number: int, frame: bytes, now_ms: int) -> None:
        """One answer, without its length."""
        link = self._links.get(number)
        if link is None:
            return
        try:
            if not link.in_flight or correlation_id_of(frame) != link.in_flight[0].correlation_id:
                raise NotKafka("the answer has an unexpected correlation id")
            outgoing = link.in_flight[0].outgoing
            assert outgoing.response is not None
            answer: Message = wire.read_response(outgoing.response, outgoing.version, frame)
        except (NotKafka, DecodeError) as error:
            self._close(link, NotKafka(f"{link.endpoint}: {error}"), now_ms)
            return
        link.in_flight.popleft()
        link.used_ms = now_ms
        if not link.in_flight and not link.unwritten:
            link.deadline_ms = NEVER
        pause = throttled_for_ms(answer, outgoing.version)
        if pause:
            link.peer.throttled_until_ms = max(link.peer.throttled_until_ms, now_ms + pause)
        row = self.traffic.by_api[answer.API_KEY]
        row.answers += 1
        row.answer_bytes += len(frame)
        took = now_ms - outgoing.sent_ms
        row.total_ms += took
        row.longest_ms = max(row.longest_ms, took)
        if self.observer is not None:
            self.observer.received(number, correlation_id_of(frame), len(frame))
        self.changes += 1
        outgoing.done(answer, now_ms)

    def written(self, number: int, now_ms: int) -> None:
        """The oldest unanswered request of a connection is written."""
        link = self._links.get(number)
        if link is not None and link.unwritten:
            link.used_ms = now_ms
            self.changes += 1
            link.unwritten.popleft().outgoing.done(None, now_ms)

    def lost(self, number: int, error: KgctlError, now_ms: int) -> None:
        """A connection has ended, or could not be opened."""
        link = self._links.pop(number, None)
        if link is not None:
            self._ended(link, error, now_ms)

    def drop(self, peer: Peer, now_ms: int, error: KgctlError) -> None:
        for link in (peer.link, peer.successor):
            if link is not None:
                self._close(link, error, now_ms)

    def close_all(self, error: KgctlError, now_ms: int) -> None:
        for link in list(self._links.values()):
            self._close(link, error, now_ms)

    def _close(self, link: Link, error: KgctlError, now_ms: int) -> None:
        if self._links.pop(link.number, None) is not None:
            self._commands.append(Close(link.number))
            self._ended(link, error, now_ms)

    def _ended(self, link: Link, error: KgctlError, now_ms: int) -> None:
        peer = self._detach(link)
        peer.error = error
        self.lost_nodes += 1
        self.traffic.lost_connections += 1
        if self.observer is not None:
            self.observer.lost(link.number, error)
        self.changes += 1
        if error.is_final:
            self.final_error = error
        settings = self.settings
        peer.blocked_until_ms = now_ms + backoff_ms(
            settings.reconnect_backoff_ms, settings.reconnect_backoff_max_ms, peer.failures, self.random
        )
        peer.failures += 1
        if link.state is State.READY:
            self._reached_ms = now_ms
        if link.state is State.CONNECTING:
            peer.setup_failures += 1
        for sent in (*link.in_flight, *link.unwritten):
            self.traffic.of(sent.outgoing.kind).failures += 1
            self._failed.append((sent.outgoing, error))

    def _detach(self, link: Link) -> Peer:
        peer = link.peer
        if peer.link is link:
            peer.link, peer.successor = peer.successor, None
        elif peer.successor is link:
            peer.successor = None
        return peer

    # --- time ---

    def check(self, now_ms: int) -> None:
        """Expire requests and connections, replace those whose session ends, close those that are idle."""
        for link in list(self._links.values()):
            if link.state is not State.READY:
                if now_ms >= link.setup_ms:
                    is_open = link.state is State.ASKING_VERSIONS
                    reason = silent(link.endpoint) if is_open else f"{link.endpoint}: could not connect in time"
                    self._close(link, Unreachable(reason), now_ms)
            elif now_ms >= link.deadline_ms and self._is_overdue(link, now_ms):
                self._close(link, NoAnswer(f"{link.endpoint}: no answer in time"), now_ms)
            elif now_ms >= link.renew_ms or link.is_leaving:
                self._replace(link, now_ms)
            elif link.is_idle and now_ms >= link.used_ms + self.settings.connections_max_idle_ms:
                self._retire(link, now_ms)

    def _is_overdue(self, link: Link, now_ms: int) -> bool:
        link.deadline_ms = min((sent.deadline_ms for sent in (*link.in_flight, *link.unwritten)), default=NEVER)
        return now_ms >= link.deadline_ms

    def _replace(self, link: Link, now_ms: int) -> None:
        peer = link.peer
        if link.is_idle and (link.is_leaving or now_ms >= link.expires_ms):
            self._retire(link, now_ms)
        elif peer.link is link and not link.is_leaving and peer.successor is None and now_ms >= peer.blocked_until_ms:
            peer.successor = self._open(peer, now_ms)

    def _retire(self, link: Link, now_ms: int) -> None:
        self._reached_ms = now_ms
        del self._links[link.number]
        self._commands.append(Close(link.number))
        self._detach(link)
        self.changes += 1

    def wake_at_ms(self) -> int:
        """When `check` has something to do; NEVER without connections."""
        wake = NEVER
        for link in self._links.values():
            if link.state is not State.READY:
                wake = min(wake, link.setup_ms)
            else:
                renew = (
                    NEVER if link.is_leaving or link.peer.successor else max(link.renew_ms, link.peer.blocked_until_ms)
                )
                idle = link.used_ms + self.settings.connections_max_idle_ms if link.is_idle else NEVER
                wake = min(wake, link.deadline_ms, idle, renew)
        return wake

    def fail_due(self, now_ms: int) -> None:
        """Report the failures of requests."""
        while self._failed:
            failed, self._failed = self._failed, []
            for outgoing, error in failed:
                self.changes += 1
                outgoing.done(error, now_ms)

    def take_commands(self) -> list[Command]:
        commands, self._commands = self._commands, []
        return commands

    def in_flight(self) -> int:
        return sum(len(link.in_flight) + len(link.unwritten) for link in self._links.values())
