"""Listener: one address that the broker listens on, and the accept loop of its sockets."""

from __future__ import annotations

import errno
import logging
import socket
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from broker.config.listeners import Endpoint, NamedAddress

if TYPE_CHECKING:
    import asyncio

    from broker.server.listener_tls import ListenerTls
    from broker.server.tls_transport import SecuredProtocol

# Connections accepted in one turn of the event loop, before those that are open get their turn.
ACCEPTS_PER_TURN = 100
# How long accepting pauses when the system is out of files or memory.
PAUSE_S = 1.0
# The shortest time between two log lines of one listener about accepting.
WARNING_INTERVAL_S = 10.0
# After this silence the system asks a client's system whether it still has the connection, this often and this many times.
KEEPALIVE_IDLE_S, KEEPALIVE_INTERVAL_S, KEEPALIVE_PROBES = 60, 10, 5
# Where a client on this machine reaches a broker that is bound to every interface.
WILDCARDS = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

# Makes a connection of an accepted socket. Raises OSError if the client has disconnected.
Connect = Callable[[socket.socket], Coroutine[Any, Any, object]]

logger = logging.getLogger("broker.server")


def reachable(endpoint: Endpoint) -> Endpoint:
    """The address at which a program on this machine reaches a broker that is bound to `endpoint`."""
    return Endpoint(WILDCARDS.get(endpoint.host, endpoint.host), endpoint.port)


class CannotListen(Exception):
    """A listener cannot be bound; `address` says which, and `__cause__` is the OSError."""

    def __init__(self, address: NamedAddress) -> None:
        super().__init__(str(address.endpoint))
        self.address = address


class Listener:
    """One entry of `listeners`. `bound` is its address, `advertised` the address that its clients are given."""

    def __init__(self, address: NamedAddress, advertised: Endpoint | None, tls: ListenerTls | None) -> None:
        """Bind the sockets, but do not accept connections yet. Raises CannotListen."""
        self.address = address
        self.tls = tls
        try:
            self._sockets = _bind(address.endpoint.host, address.endpoint.port)
        except OSError as error:
            raise CannotListen(address) from error
        self._acceptors: list[_Acceptor] = []
        self.bound = Endpoint(*self._sockets[0].getsockname()[:2])
        self.advertised = reachable(self.bound)
        if advertised is not None:
            self.advertised = Endpoint(advertised.host, advertised.port or self.bound.port)
        if advertised is None and self.bound.host in WILDCARDS:
            logger.warning(
                "clients on other machines need advertised.listeners: the broker advertises %s", self.advertised.host
            )

    @property
    def name(self) -> str:
        return self.address.name

    @property
    def security_protocol(self) -> str:
        return self.address.security_protocol

    def start(
        self,
        make: Callable[[], SecuredProtocol],
        room: Callable[[], int],
        loop: asyncio.AbstractEventLoop,
        backlog: int,
    ) -> None:
        """Accept connections, each served by the protocol that `make` returns, while `room` allows more."""
        connect: Connect
        if self.tls is None:
            connect = partial(loop.connect_accepted_socket, cast("Callable[[], asyncio.Protocol]", make))
        else:
            connect = self.tls.connector(make, loop)
        for bound in self._sockets:
            acceptor = _Acceptor(bound, connect, room, loop)
            acceptor.start(backlog)
            self._acceptors.append(acceptor)

    def resume(self) -> None:
        """Accept again: a connection has closed."""
        for acceptor in self._acceptors:
            acceptor.resume()

    def close(self) -> None:
        for acceptor in self._acceptors:
            acceptor.stop()
        for bound in self._sockets:
            bound.close()


class _Acceptor:
    """Accepts connections on one socket while there is room; further clients wait in the backlog.

    asyncio's own server has no limit on connections, and logs an error per waiting client when files run out.
    """

    def __init__(
        self,
        listening: socket.socket,
        connect: Connect,
        room: Callable[[], int],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._socket = listening
        self._connect = connect
        self._room = room
        self._loop = loop
        self._starting: set[asyncio.Task[object]] = set()
        self._accepting = False
        self._pause: asyncio.TimerHandle | None = None
        self._quiet_until = 0.0

    def start(self, backlog: int) -> None:
        self._socket.listen(backlog)
        self.resume()

    def resume(self) -> None:
        if not self._accepting and self._pause is None and self._socket.fileno() >= 0:
            self._accepting = True
            self._loop.add_reader(self._socket, self._accept)

    def stop(self) -> None:
        self._stop_accepting()
        if self._pause is not None:
            self._pause.cancel()

    def _accept(self) -> None:
        for _ in range(ACCEPTS_PER_TURN):
            if self._room() <= len(self._starting):
                self._warn("the limit of connections is reached; new clients wait")
                self._stop_accepting()
                return
            try:
                client, _ = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _EXHAUSTED:
                    raise
                self._warn(f"cannot accept connections: {error.strerror}")
                self._stop_accepting()
                self._pause = self._loop.call_later(PAUSE_S, self._end_pause)
                return
            client.setblocking(False)
            task: asyncio.Task[object] = self._loop.create_task(self._start(client))
            self._starting.add(task)
            task.add_done_callback(self._started)

    def _stop_accepting(self) -> None:
        if self._accepting:
            self._accepting = False
            self._loop.remove_reader(self._socket)

    def _end_pause(self) -> None:
        self._pause = None
        self.resume()

    def _started(self, task: asyncio.Task[object]) -> None:
        self._starting.discard(task)
        self.resume()

    async def _start(self, client: socket.socket) -> None:
        try:
            _keep_alive(client)
            await self._connect(client)
        except OSError:
            # The client disconnected first.
            client.close()

    def _warn(self, line: str) -> None:
        now = self._loop.time()
        if now >= self._quiet_until:
            self._quiet_until = now + WARNING_INTERVAL_S
            logger.warning("%s", line)


def _keep_alive(client: socket.socket) -> None:
    """Detect a host that vanishes while a request is parked: the idle limit spares such connections.

    TCP_USER_TIMEOUT would also close the connections of consumers that do not read for minutes.
    """
    client.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # macOS has another name for it.
    idle = getattr(socket, "TCP_KEEPIDLE", None) or socket.TCP_KEEPALIVE  # type: ignore[attr-defined]
    client.setsockopt(socket.IPPROTO_TCP, idle, KEEPALIVE_IDLE_S)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, KEEPALIVE_PROBES)


def _bind(host: str, port: int) -> list[socket.socket]:
    """Bind a socket for each address of `host` that this machine has, all to the same port."""
    bound: list[socket.socket] = []
    absent: OSError | None = None
    # Of a text, Python makes the name for the DNS itself, and loads tables for it.
    name = host.encode() if host.isascii() else host
    found = socket.getaddrinfo(name or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    try:
        for family, kind, protocol, _, address in dict.fromkeys(found):
            try:
                made = socket.socket(family, kind, protocol)
                bound.append(made)
                made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                made.setblocking(False)
                made.bind((address[0], port, *address[2:]))
                port = made.getsockname()[1]
            except OSError as error:
                # A name such as localhost may have an IPv6 address on a machine where IPv6 is switched off.
                if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                    raise
                absent = error
                if error.errno == errno.EADDRNOTAVAIL:
                    bound.pop().close()
        if absent is not None and not bound:
            raise absent
    except OSError:
        for made in bound:
            made.close()
        raise
    return bound
