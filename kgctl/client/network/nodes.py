"""The nodes of a cluster, and what a client remembers about its connections to each of them."""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import TYPE_CHECKING, Any

from broker.light_dataclasses import dataclass, field
from broker.light_named_tuples import NamedTuple
from kgctl.client.net.errors import KgctlError
from kgctl.client.net.steps import Endpoint

if TYPE_CHECKING:
    from kgctl.client.network.outgoing import Outgoing

NEVER = 1 << 62
# As in Kafka: requests to the coordinator of a group have a connection of their own, which no waiting Fetch blocks.
_COORDINATORS = (1 << 31) - 1


class Node(NamedTuple):
    """A broker. Addresses of the bootstrap list have negative ids until the first metadata arrives."""

    node_id: int
    host: str
    port: int
    rack: str | None = None

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(self.host, self.port)


def coordinator_node(node: Node) -> Node:
    """The same broker under an id with a connection of its own."""
    return Node(_COORDINATORS - node.node_id, node.host, node.port, node.rack)


class State(Enum):
    CONNECTING = "connecting"
    ASKING_VERSIONS = "asking for versions"
    READY = "ready"


class Sent(NamedTuple):
    """A request that waits for its answer."""

    correlation_id: int
    outgoing: Outgoing[Any]
    deadline_ms: int


@dataclass(slots=True, eq=False)
class Link:
    """One connection."""

    number: int
    peer: Peer
    endpoint: Endpoint
    # When connecting and asking for versions must be over.
    setup_ms: int
    used_ms: int
    state: State = State.CONNECTING
    in_flight: deque[Sent] = field(default_factory=deque)
    # acks=0: requests that are not written yet.
    unwritten: deque[Sent] = field(default_factory=deque)
    # No deadline of a request in flight is earlier.
    deadline_ms: int = NEVER
    # When a session ends soon, so that another connection takes its place (KIP-368).
    renew_ms: int = NEVER
    expires_ms: int = NEVER
    is_leaving: bool = False

    @property
    def is_idle(self) -> bool:
        return not self.in_flight and not self.unwritten


@dataclass(slots=True, eq=False)
class Peer:
    """A node and the connection to it."""

    node: Node
    link: Link | None = None
    # Is opened while `link` still serves: its session ends soon, or the node has another address.
    successor: Link | None = None
    failures: int = 0
    setup_failures: int = 0
    blocked_until_ms: int = 0
    throttled_until_ms: int = 0
    attempted_ms: int = -1
    error: KgctlError | None = None
    # By API key; known once a connection was ready.
    ranges: dict[int, tuple[int, int]] | None = None
    features: dict[str, int] = field(default_factory=dict)
