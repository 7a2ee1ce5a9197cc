"""Opens connections step by step: resolve, connect, TLS handshake, authentication."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from broker.light_named_tuples import NamedTuple
from kgctl.client.net.connection import Connection, remaining
from kgctl.client.net.diagnosis import explain, is_closing, is_of_tls
from kgctl.client.net.errors import KgctlError, TimedOut
from kgctl.client.net.security import Security
from kgctl.client.net.steps import Endpoint

if TYPE_CHECKING:
    from kgctl.client.net.sasl import Authenticated, Authenticator
    from kgctl.client.net.tls import Handshake, TlsClient
    from kgctl.client.net.tracing import Trace


class Address(NamedTuple):
    """One address of a host, as the functions of sockets take it."""

    family: socket.AddressFamily
    place: tuple[Any, ...]

    def __str__(self) -> str:
        return str(Endpoint(str(self.place[0]), int(self.place[1])))


class SocketBuffers(NamedTuple):
    """Kafka's options send.buffer.bytes and receive.buffer.bytes; -1: the operating system chooses."""

    send_bytes: int = -1
    receive_bytes: int = -1

    def apply(self, made: socket.socket) -> None:
        """Before it connects: a connection agrees on the largest window when it begins."""
        for name, size in ((socket.SO_SNDBUF, self.send_bytes), (socket.SO_RCVBUF, self.receive_bytes)):
            if size >= 0:
                made.setsockopt(socket.SOL_SOCKET, name, size)


BY_SYSTEM = SocketBuffers()


class Locks:
    """What the connections of one client share: the TLS context, and the tokens of SASL. Made at first use."""

    def __init__(self, security: Security) -> None:
        self.security = security

    @cached_property
    def tls(self) -> TlsClient:
        """Raises BadSecurity."""
        from kgctl.client.net.tls import TlsClient

        assert self.security.tls is not None
        return TlsClient(self.security.tls)

    @cached_property
    def authenticator(self) -> Authenticator:
        from kgctl.client.net.sasl import Authenticator

        assert self.security.sasl is not None
        return Authenticator(self.security.sasl)


class Opening:
    """One connection on its way. Each step raises a KgctlError; `run` takes all of them.

    `deadline` is a reading of time.monotonic(). Use it in a `with`, which closes a connection that `run` did not return.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        locks: Locks,
        client_id: str,
        deadline: float,
        trace: Trace | None = None,
        buffers: SocketBuffers = BY_SYSTEM,
    ) -> None:
        self._buffers = buffers
        self.endpoint, self._locks, self._client_id, self._deadline = endpoint, locks, client_id, deadline
        self._trace = trace
        self._addresses: list[Address] = []
        self._socket: socket.socket | None = None
        self._connection: Connection | None = None
        # How long the session of an authenticated connection lasts, in seconds; None: it has no end.
        self.lifetime: float | None = None

    def __enter__(self) -> Opening:
        return self

    def __exit__(self, *_: object) -> None:
        for opened in (self._connection, self._socket):
            if opened is not None:
                opened.close()

    def run(self) -> Connection:
        """A connection that is ready for requests."""
        steps = (self.resolve, self.connect, self.secure, self.authenticate)
        try:
            if self._trace is None:
                for step in steps:
                    step()
            else:
                self._run_traced(steps, self._trace)
        except BaseException:
            self.__exit__()
            raise
        return self.connection

    def _run_traced(self, steps: Sequence[Callable[[], object]], trace: Trace) -> None:
        from kgctl.client.net.tracing import OpeningTrace

        opening = OpeningTrace(trace, self.endpoint)
        try:
            for name, step in zip(("resolve", "connect", "tls", "sasl"), steps, strict=True):
                opening.step(name, step)
        except BaseException as error:
            opening.ended(error)
            raise
        opening.ended()

    def resolve(self) -> list[Address]:
        """The addresses of the host."""
        try:
            found = socket.getaddrinfo(_name_of(self.endpoint.host), self.endpoint.port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise explain(self.endpoint, error) from error
        self._addresses = list(dict.fromkeys(Address(row[0], row[4]) for row in found))
        return self._addresses

    def connect(self) -> Address:
        """The first address that accepts a connection. Those that are left share the time."""
        failures: list[Exception] = []
        for left, address in zip(range(len(self._addresses), 0, -1), self._addresses, strict=True):
            opened = socket.socket(address.family, socket.SOCK_STREAM)
            try:
                self._buffers.apply(opened)
                opened.settimeout(remaining(self._deadline) / left)
                opened.connect(address.place)
                opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except (OSError, TimedOut) as error:
                opened.close()
                failures.append(error)
                continue
            self._socket = opened
            return address
        raise explain(self.endpoint, failures[-1], connecting=True) from failures[-1]

    def secure(self) -> Handshake | None:
        """The result of the TLS handshake; None without TLS."""
        assert self._socket is not None
        if self._locks.security.tls is None:
            return None
        tls = self._locks.tls
        secured = tls.wrap(self._socket, self.endpoint, self._deadline)
        self._socket = secured
        return tls.handshake_of(secured)

    def authenticate(self) -> Authenticated | None:
        """How SASL has authenticated this connection; None without SASL."""
        if self._locks.security.sasl is None:
            return None
        authenticated = self._locks.authenticator.authenticate(self.connection, self._deadline)
        self.lifetime = authenticated.lifetime
        return authenticated

    @property
    def connection(self) -> Connection:
        if self._connection is None:
            assert self._socket is not None
            self._connection = Connection(self.endpoint, self._socket, self._client_id, self.troubleshoot)
            if self._trace is not None:
                from kgctl.client.net.tracing import RequestTrace

                self._connection.trace = RequestTrace(self._trace, self.endpoint)
        return self._connection

    def troubleshoot(self, error: Exception, is_served: bool) -> KgctlError | None:
        """Find out why a listener closes connections that it never served: it may require TLS or SASL."""
        if is_of_tls(error) and not is_closing(error):
            assert isinstance(error, OSError)
            return self._locks.tls.explain(self.endpoint, error)
        if is_served or not is_closing(error):
            return None
        from kgctl.client.net.probes import why_closed

        security = self._locks.security
        tls = self._locks.tls if security.tls is not None else None
        return why_closed(self.endpoint, tls, uses_sasl=security.sasl is not None)


def _name_of(host: str) -> str | bytes:
    """The host for getaddrinfo, which would load the codec for international names for a plain one, too."""
    return host.encode() if host.isascii() and len(host) < 64 else host
