"""The network: connections that delay, break, lose responses and repeat requests, and the broker's end of each."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from broker.protocol.api_keys import APIS
from broker.protocol.codec import decode, encode, encode_parts
from broker.protocol.wire_types import Message
from broker.server.exchange import Exchange
from broker.server.session import Session
from tests.harness.simulation.clock import SECOND

if TYPE_CHECKING:
    from tests.harness.simulation.broker import Broker
    from tests.harness.simulation.world import World


class Client(Protocol):
    """The near end of a link."""

    name: str

    def received(self, link: Link, correlation: int, response: Any) -> None: ...
    def disconnected(self, link: Link) -> None: ...


class Link:
    """A client's end of one connection. Bytes in it keep their order; different links are independent."""

    def __init__(self, world: World, client: Client) -> None:
        self._world = world
        self.client = client
        self.broker = world.broker
        self._remote = Remote(self, world.broker)
        self._up_us = self._down_us = 0
        self._count = 0
        self._cut = False  # nothing more reaches the client
        self._drains = False  # after a cut, requests in flight still reach the broker
        world.links[self] = None

    @property
    def is_open(self) -> bool:
        """Whether anything reaches the client."""
        return not self._cut

    def send(self, request: Message, version: int) -> int:
        """Send a request and return its correlation id."""
        world, faults = self._world, self._world.faults
        self._count += 1
        frame = (self._count, version, type(request).API_KEY, encode(request, version))
        self._up_us = max(self._up_us, world.clock.us + world.delay_us())
        world.clock.at(self._up_us, self._arrive, frame)
        world.note("send", self.client.name, frame)
        if world.happens(faults.reset):
            world.clock.later(world.random.randrange(2 * faults.delay_us + 1), self.reset)
        if world.happens(faults.repeat):
            # A client that lost the connection retries, and the first request arrives as well.
            twin = Link(world, Ignored(self.client.name))
            world.clock.later(world.delay_us() * world.random.choice([1, 1, 20]), twin._arrive, frame)
        return self._count

    def follow(self, before: Link) -> None:
        """Let what this connection sends arrive after what the earlier one has sent."""
        self._up_us = before._up_us

    def reset(self) -> None:
        """Break the connection. Each end notices soon, late, or only by its own timeout."""
        if self._cut:
            return
        world = self._world
        self._cut = True
        self._drains = world.happens(0.5)
        world.note("reset", self.client.name)
        if world.happens(0.8):
            world.clock.later(world.random.randrange(SECOND), self.client.disconnected, self)
        world.clock.later(world.random.choice([0, SECOND, 60 * SECOND]), self._remote_learns)

    def close(self) -> None:
        """The client closes the connection or crashes."""
        self._cut = self._drains = True
        self._world.clock.later(self._world.delay_us(), self._remote_learns)

    def broker_died(self) -> None:
        self._world.links.pop(self, None)
        if not self._cut:
            self._cut = True
            self._world.clock.later(self._world.delay_us(), self.client.disconnected, self)

    def answer(self, correlation: int, response: type[Message], version: int, body: bytes) -> None:
        """The broker has written a response."""
        if self._cut:
            return
        world = self._world
        self._down_us = max(self._down_us, self.broker.loop.now_us + world.delay_us())
        world.clock.at(self._down_us, self._deliver, correlation, response, version, body)

    def _deliver(self, correlation: int, response: type[Message], version: int, body: bytes) -> None:
        if not self._cut:
            self._world.note("receive", self.client.name, correlation, body)
            self.client.received(self, correlation, decode(response, body, version))

    def _arrive(self, frame: tuple[int, int, int, bytes]) -> None:
        if not self.broker.loop.dead and (not self._cut or self._drains):
            self.broker.loop.deliver(self._remote.receive, frame)

    def _remote_learns(self) -> None:
        self._world.links.pop(self, None)
        if not self.broker.loop.dead:
            self.broker.loop.deliver(self._remote.lost)


class Ignored:
    """Receives the responses to repeated requests and ignores them."""

    def __init__(self, name: str) -> None:
        self.name = f"{name}'s twin"

    def received(self, link: Link, correlation: int, response: Any) -> None:
        pass

    def disconnected(self, link: Link) -> None:
        pass


class Remote:
    """The broker's end: requests run one after another, and a parked one delays those behind it, as in the server."""

    def __init__(self, link: Link, broker: Broker) -> None:
        self._link = link
        self._broker = broker
        self._frames: deque[tuple[int, int, int, bytes]] = deque()
        self._exchanges: deque[Exchange] = deque()
        self._parked: Exchange | None = None
        self._pumping = False
        self._lost = False
        self.client_host = "/127.0.0.1"
        listener: Any = None
        self.session = Session(listener, authenticated=True)

    @property
    def now_s(self) -> float:
        return self._broker.loop.time()

    def soon(self, run: Callable[[], None]) -> None:
        self._broker.loop.call_soon(run)

    def abort(self) -> None:
        self._link.reset()

    def receive(self, frame: tuple[int, int, int, bytes]) -> None:
        self._frames.append(frame)
        self._pump()

    def lost(self) -> None:
        self._lost = True
        if self._parked is not None and self._parked.abandon is not None:
            self._parked.abandon()
        self.session.at_end()

    def _pump(self) -> None:
        if self._pumping or self._parked is not None or self._lost:
            return
        self._pumping = True
        while self._frames and self._parked is None:
            correlation, version, key, body = self._frames.popleft()
            request: Any = decode(APIS[key].request, body, version)
            exchange = Exchange(self, key, version, correlation, self._link.client.name)  # type: ignore[arg-type]
            self._exchanges.append(exchange)
            self._parked = exchange
            self._broker.submit(request, exchange)
            if exchange.answered:
                self._parked = None
        self._pumping = False
        self.released()

    def answered(self, exchange: Exchange, response: Message) -> None:
        if self._lost:
            return
        parts: Any = encode_parts(response, exchange.version)
        body = b"".join(part if isinstance(part, bytes) else part.tobytes() for part in parts)
        exchange.parts = [(type(response), body)]  # type: ignore[list-item]
        self._broker.judge.answered(exchange, decode(type(response), body, exchange.version))
        self._broker.flusher.release(exchange)
        if self._parked is exchange and not self._pumping:
            self._parked = None
            self._broker.loop.call_soon(self._pump)

    def released(self) -> None:
        if self._pumping or self._lost:
            return
        while self._exchanges and self._exchanges[0].released:
            exchange = self._exchanges.popleft()
            self._broker.judge.released(exchange)
            response, body = exchange.parts[0]  # type: ignore[misc]
            self._link.answer(exchange.correlation_id, response, exchange.version, body)
