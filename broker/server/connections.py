"""All open connections: how many there may be, and which are idle."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from broker.server.hangups import HangupWatch
from broker.server.held_bytes import HeldBytes
from broker.server.request_times import RequestTimes

if TYPE_CHECKING:
    from broker.server.connection_limits import ConnectionLimits
    from broker.server.session import Session
    from broker.server.throttle import Throttle

# How many times per idle limit the registry looks for idle connections.
IDLE_CHECKS = 10
# How long a client may take to authenticate, however often it sends something.
AUTHENTICATION_S = 30.0

logger = logging.getLogger("broker.server")


class Open(Protocol):
    """A connection, as far as the registry uses it."""

    client_host: str
    session: Session
    active_at: float

    @property
    def parked(self) -> bool: ...
    def regulate_reading(self) -> None: ...
    def finish(self) -> None: ...
    def abort(self) -> None: ...


class Connections:
    """The registry of open connections and its limits."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        throttle: Throttle,
        *,
        frame_bytes: int,
        idle_ms: int,
        limits: ConnectionLimits,
        when_room: Callable[[], None],
    ) -> None:
        """Call `when_room` whenever a connection closes."""
        self.throttle = throttle
        self.times = RequestTimes()
        self.frame_bytes = frame_bytes
        self.held = HeldBytes(loop, frame_bytes)
        self.hangups = HangupWatch(loop)
        self._loop = loop
        self._idle_s = idle_ms / 1000
        # From the accept on, so that it includes a TLS handshake.
        self.authenticate_within_s = min(AUTHENTICATION_S, self._idle_s) if idle_ms > 0 else AUTHENTICATION_S
        self._limits = limits
        self._when_room = when_room
        # By number, in the order of their numbers.
        self._open: dict[int, Open] = {}
        self._admitted = 0
        self._past_traffic = 0, 0
        self._per_host: Counter[str] = Counter()
        self._per_listener: Counter[str] = Counter()
        self._idle_timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Open]:
        return iter(self._open.values())

    @property
    def most(self) -> int:
        """How many there may be."""
        return self._limits.most

    @property
    def admitted(self) -> int:
        """How many there have been."""
        return self._admitted

    def traffic(self) -> tuple[int, int]:
        """Bytes received and sent so far, also by connections that are closed."""
        received, sent = self._past_traffic
        for connection in self:
            client = connection.session.client
            received, sent = received + client.bytes_in, sent + client.bytes_out
        return received, sent

    def per_listener(self) -> Mapping[str, int]:
        return self._per_listener

    def page(self, after: int, most: int) -> tuple[list[Open], bool]:
        """The first of those with higher numbers than `after`, and whether there are no others."""
        found = list(islice((each for number, each in self._open.items() if number > after), most + 1))
        return found[:most], len(found) <= most

    def room(self, listener: str) -> int:
        """How many more connections the listener may accept."""
        here = self._limits.per_listener[listener] - self._per_listener[listener]
        return min(self._limits.most - len(self._open), here)

    def admit(self, connection: Open) -> bool:
        """Register a new connection; False if its host has too many, or connects too often."""
        host = connection.session.host
        if self.throttle.enforced and not self.throttle.allow_connection(host):
            return False
        count = self._per_host[host]
        if count >= self._limits.of_host(host):
            logger.warning("refusing a connection from %s, which has %d", connection.client_host, count)
            return False
        self._admitted += 1
        connection.session.client.number = self._admitted
        self._open[self._admitted] = connection
        self._per_host[host] += 1
        self._per_listener[connection.session.listener.name] += 1
        if self._idle_timer is None and self._idle_s > 0:
            self._idle_timer = self._loop.call_later(self._idle_s / IDLE_CHECKS, self._close_idle)
        return True

    def forget(self, connection: Open) -> None:
        self.held.forget(connection)
        client = connection.session.client
        if self._open.pop(client.number, None) is not None:
            received, sent = self._past_traffic
            self._past_traffic = received + client.bytes_in, sent + client.bytes_out
            self._per_listener[connection.session.listener.name] -= 1
            host = connection.session.host
            self._per_host[host] -= 1
            if not self._per_host[host]:
                del self._per_host[host]
            self._when_room()

    def abort_all(self) -> None:
        """Close every connection now; unsent answers are lost."""
        for connection in list(self):
            connection.abort()

    async def close_all(self, grace_s: float) -> None:
        """Close every connection once its answers are sent, or after `grace_s`."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        for connection in list(self):
            connection.finish()
        until = self._loop.time() + grace_s
        while self._open and self._loop.time() < until:
            await asyncio.sleep(0.005)
        self.abort_all()
        while self._open:
            await asyncio.sleep(0)
        self.held.close()
        self.hangups.close()

    def _close_idle(self) -> None:
        self._idle_timer = None
        since = self._loop.time() - self._idle_s
        for connection in list(self):
            if connection.active_at < since and not connection.parked:
                connection.abort()
        if self._open:
            self._idle_timer = self._loop.call_later(self._idle_s / IDLE_CHECKS, self._close_idle)
