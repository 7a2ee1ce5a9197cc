"""The network of one client: nodes, connections, requests, metadata. No I/O: an engine carries out its commands."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from broker.protocol.wire_types import Message
from kgctl.client.net.errors import KgctlError, NoAnswer, Unreachable, Unsupported
from kgctl.client.net.steps import Endpoint
from kgctl.client.network.commands import Command
from kgctl.client.network.connections import Connections
from kgctl.client.network.metadata import Metadata
from kgctl.client.network.metadata_update import MetadataUpdate
from kgctl.client.network.nodes import NEVER, Node, Peer, State
from kgctl.client.network.outgoing import Outgoing
from kgctl.client.network.settings import NetworkSettings
from kgctl.client.network.traffic import Observer, Traffic
from kgctl.client.network.versions import common_version

if TYPE_CHECKING:
    from random import Random


class NetworkClient:
    """As Kafka's NetworkClient. Callers pass the time; a turn of an engine is: events, participants, `advance`, commands.

    `changes` grows with everything that participants may wait for: answers, failures, connections, updates of the metadata.
    """

    def __init__(self, bootstrap: Sequence[Endpoint], settings: NetworkSettings, random: Random) -> None:
        self.settings = settings
        addresses = [Node(-index, *endpoint) for index, endpoint in enumerate(bootstrap, 1)]
        self.metadata = Metadata(settings, random, addresses)
        self._random = random
        self._connections = Connections(settings, random)
        self._update = MetadataUpdate(self.metadata, settings)
        # Requests for any node, and when they time out.
        self._unplaced: deque[tuple[Outgoing[Any], int]] = deque()
        self._lost_nodes = 0

    @property
    def changes(self) -> int:
        return self._connections.changes

    @property
    def traffic(self) -> Traffic:
        """What was sent and received so far."""
        return self._connections.traffic

    def observe(self, observer: Observer) -> None:
        """Let it see each request from now on."""
        self._connections.observer = observer

    def touch(self) -> None:
        """Something has changed that another participant may wait for: all of them advance again in this turn."""
        self._connections.changes += 1

    # --- requests to one node ---

    def is_ready(self, node_id: int, now_ms: int) -> bool:
        """Whether `send` may be called now. Begins to connect if there is no connection and backoff allows one."""
        peer = self._peer(node_id)
        if peer is None:
            return False
        if peer.link is None:
            self._connections.connect(peer, now_ms)
            return False
        if self._update.is_due(now_ms):
            self._update_metadata(now_ms)  # it goes first, or a busy client would never ask
        return self._connections.is_ready(peer, now_ms)

    def ready_at_ms(self, node_id: int, now_ms: int) -> int | None:
        """When to ask `is_ready` again: after backoff or throttling. None: after the next event."""
        peer = self._peer(node_id)
        if peer is None:
            return None
        if peer.link is None:
            return peer.blocked_until_ms if peer.blocked_until_ms > now_ms else None
        return peer.throttled_until_ms if peer.throttled_until_ms > now_ms else None

    def is_unavailable(self, node_id: int, now_ms: int) -> bool:
        """Whether the connection to a node has failed, and backoff does not allow another one yet."""
        peer = self._peer(node_id)
        if peer is None or peer.link is not None:
            return False
        return peer.blocked_until_ms > now_ms or self._connections.is_refused(peer)

    def error_of(self, node_id: int) -> KgctlError | None:
        """Why the last connection to a node failed; None since it is connected again."""
        peer = self._peer(node_id)
        return None if peer is None else peer.error

    def why_unreachable(self) -> str:
        """Why nodes could not be reached, each reason once; empty if all connections are well."""
        reasons = {str(peer.error): None for peer in self._connections.peers.values() if peer.error is not None}
        return "; ".join(reasons)

    def unreached_ms(self, now_ms: int) -> int:
        """How long no node has been connected; 0 while one is, or before the first attempt."""
        return self._connections.unreached_ms(now_ms)

    def send(self, node_id: int, outgoing: Outgoing[Any], now_ms: int) -> None:
        """Send to a node that is ready. `done` gets Unreachable in this turn if it is not."""
        peer = self._peer(node_id)
        if peer is not None and self._connections.is_ready(peer, now_ms):
            self._connections.send(peer, outgoing, now_ms)
            return
        where = f"node {node_id}" if peer is None else str(peer.node.endpoint)
        self._connections.fail_later(outgoing, Unreachable(f"{where}: the connection is not ready"))

    def version_of(
        self, node_id: int, request: type[Message], min_version: int = 0, max_version: int = 1 << 15
    ) -> int | Unsupported | None:
        """The version in which this request would go to a node; None: the node has not been asked yet."""
        peer = self._peer(node_id)
        return None if peer is None else common_version(peer, request, min_version, max_version)

    def feature_level(self, node_id: int, name: str) -> int:
        """The finalized level of a feature (KIP-584), as this node reports it."""
        peer = self._peer(node_id)
        return 0 if peer is None else peer.features.get(name, 0)

    def in_flight(self, node_id: int | None = None) -> int:
        """The number of requests without an answer; None: of all nodes."""
        if node_id is None:
            return self._connections.in_flight()
        peer = self._connections.peers.get(node_id)
        return sum(len(x.in_flight) + len(x.unwritten) for x in (peer.link, peer.successor) if x) if peer else 0

    def drop(self, node_id: int, now_ms: int, error: KgctlError) -> None:
        """Close the connection to a node. Requests in flight get the error."""
        peer = self._connections.peers.get(node_id)
        if peer is not None:
            self._connections.drop(peer, now_ms, error)

    def know(self, node: Node) -> None:
        """Remember a node that the metadata does not list, such as a coordinator."""
        self._connections.know(node)

    # --- requests to any node ---

    def send_any(self, outgoing: Outgoing[Any], now_ms: int) -> None:
        """Send to the least loaded node, as soon as there is one. Its timeout includes this wait."""
        self._unplaced.append((outgoing, now_ms + outgoing.timeout_ms))

    # --- for the engine and the simulation ---

    def advance(self, now_ms: int) -> list[Command]:
        """Do what is due. Carry out the commands in order."""
        connections = self._connections
        connections.check(now_ms)
        connections.fail_due(now_ms)
        self._note_losses()
        if self._update.is_due(now_ms):
            self._update_metadata(now_ms)
        if self._unplaced:
            self._place(now_ms)
        connections.fail_due(now_ms)
        return connections.take_commands()

    def connected(self, link: int, now_ms: int, session_ms: int | None = None) -> None:
        """The connection is open; its session, if it has an end, lasts this long."""
        self._connections.connected(link, now_ms, session_ms)

    def lost(self, link: int, error: KgctlError, now_ms: int) -> None:
        """The connection has ended, or could not be opened."""
        self._connections.lost(link, error, now_ms)

    def received(self, link: int, frame: bytes, now_ms: int) -> None:
        """An answer has arrived; the frame has no length prefix."""
        self._connections.received(link, frame, now_ms)

    def written(self, link: int, now_ms: int) -> None:
        """The oldest `Write` of this link with `is_unanswered` is with the operating system."""
        self._connections.written(link, now_ms)

    def wake_at_ms(self) -> int | None:
        """Call `advance` no later than this."""
        wake, update = self._connections.wake_at_ms(), self._update.wake_at_ms()
        if self._unplaced or update < wake:
            place = self._next_place_ms()
            if self._unplaced:
                wake = min(wake, place, *(until for _, until in self._unplaced))
            wake = min(wake, max(update, place))
        return None if wake >= NEVER else wake

    def close(self, now_ms: int) -> None:
        """End all connections. Requests without an answer fail; take the commands with `advance` once more."""
        error = Unreachable("the client is closed")
        for outgoing, _ in self._unplaced:
            self._connections.fail_later(outgoing, error)
        self._unplaced.clear()
        self._connections.close_all(error, now_ms)

    # --- inner parts ---

    def _peer(self, node_id: int) -> Peer | None:
        peer = self._connections.peers.get(node_id)
        if peer is None:
            node = self.metadata.nodes().get(node_id)
            peer = None if node is None else self._connections.know(node)
        return peer

    def _note_losses(self) -> None:
        connections, metadata = self._connections, self.metadata
        if self._lost_nodes != connections.lost_nodes:
            self._lost_nodes = connections.lost_nodes
            metadata.request_update()
            metadata.error = metadata.error or connections.final_error
        elif metadata.error is None and connections.final_error is not None:
            connections.final_error = None  # the program has seen it
            self.touch()

    def _update_metadata(self, now_ms: int) -> None:
        peer, can_hope = self._least_loaded(now_ms)
        if self._update.needs_bootstrap(can_hope, now_ms):
            self._update.rebootstrap(now_ms)
            peer, can_hope = self._least_loaded(now_ms)
        if peer is None:
            return
        if self._connections.is_ready(peer, now_ms):
            outgoing = self._update.begin(now_ms, self._updated)
            self._connections.send(peer, outgoing, now_ms)
        else:
            self._connections.connect(peer, now_ms)

    def _updated(self) -> None:
        self._connections.adopt(self.metadata.nodes().values())
        self._connections.changes += 1

    def _place(self, now_ms: int) -> None:
        waiting, self._unplaced = self._unplaced, deque()
        for outgoing, until_ms in waiting:
            peer, _ = self._least_loaded(now_ms)
            if now_ms >= until_ms:
                self._connections.fail_later(outgoing, self._no_node())
            elif peer is not None and self._connections.is_ready(peer, now_ms):
                outgoing.timeout_ms = until_ms - now_ms
                self._connections.send(peer, outgoing, now_ms)
            else:
                if peer is not None:
                    self._connections.connect(peer, now_ms)
                error = self._final_error(now_ms)
                if error is not None:
                    self._connections.fail_later(outgoing, error)
                else:
                    self._unplaced.append((outgoing, until_ms))

    def _final_error(self, now_ms: int) -> KgctlError | None:
        """The reason if no node lets this client in, and no attempt is under way."""
        peers = [self._peer(node_id) for node_id in self.metadata.nodes()]
        if any(peer is None or peer.link is not None for peer in peers):
            return None
        errors = [peer.error for peer in peers if peer is not None]
        return errors[0] if errors and all(error is not None and error.is_final for error in errors) else None

    def _no_node(self) -> KgctlError:
        return NoAnswer(self.why_unreachable() or "no node of the cluster answers in time")

    def _next_place_ms(self) -> int:
        """When time alone lets some node be asked or connected to; NEVER while an event must come first."""
        soonest = NEVER
        for node_id in self.metadata.nodes():
            peer = self._peer(node_id)
            assert peer is not None
            if peer.link is None:
                soonest = soonest if self._connections.is_refused(peer) else min(soonest, peer.blocked_until_ms)
            elif peer.link.state is not State.READY:
                return NEVER
            elif self._connections.is_ready(peer, peer.throttled_until_ms):
                soonest = min(soonest, peer.throttled_until_ms)
        return soonest

    def _least_loaded(self, now_ms: int) -> tuple[Peer | None, bool]:
        """The node with the fewest requests in flight; else one that is connecting, else one that may connect.

        And whether there is such a node, or at least a connection that is full.
        """
        nodes = list(self.metadata.nodes())
        begin = self._random.randrange(len(nodes)) if nodes else 0
        ready: Peer | None = None
        connecting: Peer | None = None
        idle: Peer | None = None
        fewest, has_connection = 1 << 30, False
        for node_id in (*nodes[begin:], *nodes[:begin]):
            peer = self._peer(node_id)
            assert peer is not None
            link = peer.link
            if link is None:
                is_allowed = now_ms >= peer.blocked_until_ms and not self._connections.is_refused(peer)
                if is_allowed and (idle is None or peer.attempted_ms < idle.attempted_ms):
                    idle = peer
            elif link.state is not State.READY:
                connecting = connecting or peer
            elif self._connections.is_ready(peer, now_ms):
                count = len(link.in_flight)
                if count == 0:
                    return peer, True
                if count < fewest:
                    ready, fewest = peer, count
            else:
                has_connection = True
        found = ready or connecting or idle
        return found, found is not None or has_connection
